// Responses to a refresh that prove the session dead: the refresh's answer, the account, the events and what is kept, each with
// the project's own word for why.

import RingbackBase
import Testing

/// A row: what happens at the project, and the word that the next refresh is answered with.
struct EndedRow: Sendable, CustomTestStringConvertible {
    typealias Deed = @Sendable (Stage, inout OtherProgram) async throws -> Void

    let name: String
    let kind: String
    let word: String
    let deed: Deed

    var testDescription: String { "\(name), \(kind)" }

    /// Both kinds, and a switch that shows after two minutes.
    private static func switched(
        _ name: String, _ word: String, _ settings: JSON, _ kinds: [String] = Stage.tokenKinds
    ) -> [EndedRow] {
        done(name, word, kinds) { stage, _ in
            try await stage.setProject(settings)
            try await stage.advance(120)
        }
    }

    private static func done(
        _ name: String, _ word: String, _ kinds: [String] = Stage.tokenKinds, _ deed: @escaping Deed
    ) -> [EndedRow] {
        kinds.map { EndedRow(name: name, kind: $0, word: word, deed: deed) }
    }

    /// What no honest server says of its own here.
    private static func said(_ name: String, _ word: String, status: Int) -> [EndedRow] {
        done(name, word) { stage, _ in
            try await stage.fault(["kind": "error", "status": .integer(status), "error": .string(word)])
        }
    }

    private static let mira: JSON = ["mira@example.org"]

    static let all: [EndedRow] =
        switched("the session was ended", "refresh_token_not_found", ["end_sessions": true])
        + switched("the user was deleted", "refresh_token_not_found", ["delete_users": mira])
        + switched("the database was restored", "refresh_token_not_found", ["rewind": 1], ["v1"])
        + switched("the counter is behind the token", "validation_failed", ["rewind": 1], ["v2"])
        + switched("a token without a session", "session_not_found", ["stray_sessions": true], ["v1"])
        + switched("past not_after", "session_expired", ["not_after": 60])
        + switched("timebox", "session_expired", ["session_timebox": 60])
        + switched("inactivity", "session_expired", ["session_inactivity": 60])
        + switched("banned", "user_banned", ["ban": mira])
        + switched("of an OAuth client", "invalid_client", ["bind_sessions": true])
        + done("single session", "session_expired") { stage, program in
            try await stage.setProject(["single_session": true])
            try await stage.advance(10)
            try await program.signIn()
        }
        + done("refresh_token_already_used", "refresh_token_already_used") { stage, program in
            for _ in 0..<3 { #expect(try await program.refresh().status == 200) }
            try await stage.advance(2)
        }
        + said("session_not_found", "session_not_found", status: 400)
        + said("validation_failed", "validation_failed", status: 400)
        + said("user_not_found", "user_not_found", status: 400)
        + said("user_not_found, as of an access token", "user_not_found", status: 403)
}

@Suite struct `A project's session that is dead` {
    @Test(arguments: EndedRow.all)
    func `dead: it goes, and everybody is told why, over a restart too`(row: EndedRow) async throws {
        try await Stage.playShared(row.kind) { stage, program in
            let subject = try await stage.account("app")["subject"]
            let events = try await stage.listen()
            try await row.deed(stage, &program)
            let before = try await stage.refreshes()
            try await stage.expectDead(row.word)
            #expect(try await stage.refreshes() == before + 1)
            for kind in ["refresh_failed", "signed_out"] {
                let event = try await events.next(kind)
                #expect(event["error"]?["code"] == "session_expired", "\(kind) \(event.text)")
                #expect(event["error"]?["provider_code"]?.string == row.word, "\(kind) \(event.text)")
                if kind == "signed_out" { #expect(event["subject"] == subject && event["state"] == "unauthenticated") }
            }
            // What was kept is the end alone: there is nothing to present any more.
            try await stage.restartAfterKill()
            try await stage.expectNobody(row.word)
            #expect(try await stage.refreshes() == before + 1)
            let person = try await stage.api("GET", "/v1/accounts/app/session")["user_message"]?.string
            #expect(person == (row.word == "user_banned" ? "This account is blocked." : Self.ended))
        }
    }

    private static let ended = "Session expired. Please sign in again."

    @Test(arguments: Stage.tokenKinds, ["session_not_found", "session_expired", "user_not_found", "bad_jwt"])
    func `at other endpoints: dead by some words, and a token old by another`(
        kind: String, word: String
    ) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let fault: JSON = [
                "endpoint": "supabase_user", "kind": "error", "status": 403, "error": .string(word), "count": 1,
            ]
            try await stage.switchProject(["faults": .array([fault])])
            let before = try await stage.refreshes()
            let answer = try await stage.api("GET", "/v1/accounts/app/user")
            if word == "bad_jwt" {
                #expect(answer.status == 200, "\(answer)")
                #expect(try await stage.refreshes() == before + 1)
            } else {
                #expect(answer.status == 401 && answer.code == "session_expired", "\(answer)")
                #expect(answer["provider_code"]?.string == word, "\(answer)")
                try await stage.expectNobody(word)
                #expect(try await stage.refreshes() == before)
            }
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `bad_jwt that stays: one refresh, then the server's word, and the session stays`(
        kind: String
    ) async throws {
        try await Stage.playShared(kind) { stage, _ in
            let fault: JSON = ["endpoint": "supabase_user", "kind": "error", "status": 403, "error": "bad_jwt"]
            try await stage.switchProject(["faults": .array([fault])])
            let before = try await stage.refreshes()
            let answer = try await stage.api("GET", "/v1/accounts/app/user")
            #expect(answer.status >= 400 && answer["provider_code"] == "bad_jwt", "\(answer)")
            #expect(try await stage.refreshes() == before + 1)
            #expect(try await stage.isHeld())
            try await stage.expectAlive()
        }
    }
}
