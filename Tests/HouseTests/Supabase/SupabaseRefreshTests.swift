// What a project does with a refresh token, row by row, for both kinds of them, and what the daemon makes of that.
// Rows whose session ends stand in SupabaseRefreshEndTests, rows without an answer in SupabaseRefreshOutageTests.

import RingbackBase
import Testing

@Suite struct `A project's refresh tokens` {
    @Test(arguments: Stage.tokenKinds)
    func `current: the current token brings another, each time`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            var tokens: Set<String> = [try #require(try await stage.token("app"))]
            for _ in 0..<3 {
                // Tokens of one second are the same text.
                try await stage.advance(1)
                try await stage.expectAlive()
                tokens.insert(try #require(try await stage.token("app")))
            }
            #expect(tokens.count == 4)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `parent of the active token, one behind: answered at any time`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, program in
            // Twice: to the daemon's token, and one further. Now the daemon is one step behind.
            #expect(try await program.refresh().status == 200)
            #expect(try await program.refresh().status == 200)
            try await stage.advance(1_800)
            try await stage.expectAlive()
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `older, within the interval: answered`(kind: String) async throws {
        try await Stage.playShared(kind, [("reuse_interval", 600)]) { stage, program in
            for _ in 0..<4 { #expect(try await program.refresh().status == 200) }
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `older, after the interval: the session ends, for everybody`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, program in
            for _ in 0..<3 { #expect(try await program.refresh().status == 200) }
            // The interval of the first kind counts whole seconds, and includes its end.
            try await stage.advance(2)
            try await stage.expectDead("refresh_token_already_used")
            try await stage.advance(2)
            #expect(try await program.refresh().status == 400)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `older, where nothing rotates: the daemon's session ends, and nobody else's`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, program in
            try await stage.setProject(["rotation": false])
            for _ in 0..<3 { #expect(try await program.refresh().status == 200) }
            try await stage.advance(2)
            try await stage.expectDead("refresh_token_already_used")
            #expect(try await program.refresh().status == 200)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `older, where reuse is allowed: answered for ever, for a token of the second kind`(
        kind: String
    ) async throws {
        try await Stage.playShared(kind) { stage, program in
            try await stage.setProject(["allow_reuse": true])
            for _ in 0..<4 { #expect(try await program.refresh().status == 200) }
            try await stage.advance(1_800)
            if kind == "v2" {
                try await stage.expectAlive()
            } else {
                try await stage.expectDead("refresh_token_already_used")
            }
        }
    }

    // MARK: A person's second factor

    /// The daemon gets a session of somebody with a second factor, which it has not seen.
    private func playLow(
        _ kind: String, _ test: (Stage, inout OtherProgram, (id: String, secret: String)) async throws -> Void
    ) async throws {
        try await Stage.playShared(kind, [("allow_low_aal", 600)]) { stage, program in
            let factor = try await program.enroll()
            try await program.prove(factor)
            // The proof ended the daemon's session, which was another program's as well.
            try await program.signIn()
            try await program.handIn()
            try await test(stage, &program, factor)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `low AAL: a session without the second factor lives as long as the project says`(
        kind: String
    ) async throws {
        try await playLow(kind) { stage, _, _ in
            let session = try await stage.api("GET", "/v1/accounts/app/session")
            // The access token's end comes with the session's.
            #expect((500...600).contains(session["expires_in"]?.integer ?? 0), "\(session)")
            #expect(try await stage.account("app")["aal"] == "aal1")
            try await stage.advance(300)
            try await stage.expectAlive()
            let later = try await stage.api("GET", "/v1/accounts/app/session")
            #expect((200...300).contains(later["expires_in"]?.integer ?? 0), "\(later)")
            try await stage.advance(301)
            try await stage.expectDead("session_expired")
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `low AAL: a proof in time takes the limit away`(kind: String) async throws {
        try await playLow(kind) { stage, _, factor in
            let path = "/v1/accounts/app/factors/\(factor.id)"
            let challenge = try await stage.api("POST", "\(path)/challenge", [:])
            let proof = try await stage.api(
                "POST", "\(path)/verify",
                ["challenge_id": challenge["id"] ?? .null, "code": .string(Authenticator.code(factor.secret))])
            #expect(proof.status == 200, "\(proof)")
            let session = try await stage.api("GET", "/v1/accounts/app/session")
            #expect((session["expires_in"]?.integer ?? 0) > 3_000, "\(session)")
            try await stage.advance(601)
            try await stage.expectAlive()
            #expect(try await stage.account("app")["aal"] == "aal2")
        }
    }
}
