// Failures of a refresh at a project that do not prove the session dead: the session is kept and served, the account says
// what is wrong, and the next refresh works once the failure is over.

import RingbackBase
import Testing

/// A row: what goes wrong at the project, and what callers are told.
struct OutageRow: Sendable, CustomTestStringConvertible {
    let name: String
    let kind: String
    let trouble: JSON
    let status: Int
    let code: String
    var word: String?

    var testDescription: String { "\(name), \(kind)" }

    private static func row(
        _ name: String, _ trouble: JSON, _ status: Int, _ code: String, _ word: String? = nil
    ) -> [OutageRow] {
        Stage.tokenKinds.map {
            OutageRow(name: name, kind: $0, trouble: trouble, status: status, code: code, word: word)
        }
    }

    private static func fault(_ members: JSON) -> JSON { ["faults": [Stage.fault(members, isLasting: true)]] }

    private static func text(_ status: Int) -> JSON { fault(["kind": "status", "status": .integer(status)]) }

    private static func said(_ status: Int, _ word: String) -> JSON {
        fault(["kind": "error", "status": .integer(status), "error": .string(word)])
    }

    private static func away(_ name: String, _ trouble: JSON) -> [OutageRow] {
        row(name, trouble, 503, "provider_unreachable")
    }

    private static func misread(_ name: String, _ members: JSON) -> [OutageRow] {
        row(name, fault(members), 502, "invalid_provider_response")
    }

    private static func misconfigured(_ name: String, _ trouble: JSON) -> [OutageRow] {
        row(name, trouble, 400, "invalid_configuration")
    }

    private static func hook(_ name: String, _ hook: JSON, _ word: String) -> [OutageRow] {
        row(name, ["supabase": ["token_hook": hook]], 422, "provider_error", word)
    }

    private static let statuses: [OutageRow] = ([408] + Array(500...504) + Array(520...530)).flatMap {
        away("\($0)", text($0))
    }

    private static let words: [OutageRow] =
        away("a row that is locked: 409 conflict", said(409, "conflict"))
        + away("500 unexpected_failure", said(500, "unexpected_failure"))
        + away("504 request_timeout", said(504, "request_timeout"))
        + away("409 with a word that would be an end", said(409, "refresh_token_already_used"))
        + away("500 with a word that would be an end", said(500, "session_not_found"))
        + row("429 with a word that would be an end", said(429, "refresh_token_not_found"), 429, "rate_limited")
        + row("429 over_request_rate_limit", said(429, "over_request_rate_limit"), 429, "rate_limited")
        + row("429 without a shape", text(429), 429, "rate_limited")

    private static let strangers: [OutageRow] =
        misread("captive portal: a page", ["kind": "html", "status": 200])
        + misread("captive portal: a page that refuses", ["kind": "html", "status": 403])
        + misread("captive portal: a redirect", ["kind": "redirect", "to": "http://127.0.0.1:1/portal"])
        + away("captive portal: 511", fault(["kind": "html", "status": 511]))
        + misread("not JSON: a text", ["kind": "status", "status": 200])
        + misread("not JSON: nothing at all", ["kind": "empty", "status": 200])
        + misread("not JSON: nothing, and a refusal", ["kind": "empty", "status": 400])
        + misread("JSON of nobody's", ["kind": "error", "status": 200, "body": ["hello": "world"]])

    private static let gateway: [OutageRow] =
        misconfigured("401: a key that the gateway does not know", ["supabase": ["api_keys": ["another"]]])
        + misconfigured("401: a page", fault(["kind": "html", "status": 401]))
        + misconfigured("404: no Auth server there", text(404))
        + misconfigured("540: the project is paused", text(540))

    private static let hooks: [OutageRow] =
        away("hook: its own no without a status", ["supabase": ["token_hook": ["message": "No."]]])
        + away("hook: 503", ["supabase": ["token_hook": ["status": 503, "message": "Later."]]])
        + hook("hook: 400", ["status": 400, "message": "No."], "unknown")
        + hook("hook: 401", ["status": 401, "message": "No."], "unknown")
        + hook("hook: 403", ["status": 403, "message": "Not on Sundays."], "unknown")
        + hook("hook: 404", ["status": 404, "message": "No."], "unknown")
        + hook("hook_timeout", ["code": "hook_timeout"], "hook_timeout")
        + hook("hook_timeout_after_retry", ["code": "hook_timeout_after_retry"], "hook_timeout_after_retry")
        + hook("hook's size", ["code": "hook_payload_over_size_limit"], "hook_payload_over_size_limit")
        + hook("hook's type", ["code": "hook_payload_invalid_content_type"], "hook_payload_invalid_content_type")

    private static let database: [OutageRow] =
        away(
            "database: a trigger",
            fault(["kind": "error", "status": 500, "body": ["code": "P0001", "message": "no more seats"]]))
        + row(
            "database: a status of its own",
            fault(["kind": "error", "status": 403, "body": ["code": "PT403", "message": "not here"]]), 422,
            "provider_error", "database_error")

    static let all: [OutageRow] = statuses + words + strangers + gateway + hooks + database
}

@Suite struct `A project's session in an outage` {
    /// Ends every trouble of the table.
    private static let over: JSON = [
        "clear": true, "supabase": ["token_hook": .null, "api_keys": ["sb_publishable_sandbox"]],
        // Tokens of one second are the same text.
        "advance_clock": 2,
    ]

    /// Its token is served, and the account says what is wrong.
    private func expectKept(_ stage: Stage, _ token: String, _ row: OutageRow) async throws {
        #expect(try await stage.token("app") == token)
        #expect(try await stage.isHeld())
        // A refresh that nobody asked for clears the error while it is under way.
        try await stage.eventually("\(row.code) in the account") {
            try await stage.account("app")["error"]?["code"]?.string == row.code
        }
    }

    @Test(arguments: OutageRow.all)
    func `retry: it is kept and served, over a restart too, and refreshed when that is over`(
        row: OutageRow
    ) async throws {
        try await Stage.playShared(row.kind) { stage, _ in
            let token = try #require(try await stage.token("app"))
            let events = try await stage.listen()
            try await stage.switchProject(row.trouble)
            let answer = try await stage.refreshApp()
            #expect(answer.status == row.status && answer.code == row.code, "\(answer)")
            #expect(row.word == nil || answer["provider_code"]?.string == row.word, "\(answer)")
            if row.code == "invalid_configuration" { #expect(answer["recovery"] == "fix_configuration") }
            let event = try await events.next("refresh_failed")
            #expect(event["error"]?["code"]?.string == row.code && event["subject"] != nil, "\(event.text)")
            try await expectKept(stage, token, row)
            try await stage.restartAfterKill()
            #expect(try await stage.token("app") == token)
            #expect(try await stage.isHeld())
            try await stage.switchProject(Self.over)
            // What was under way when it ended may still fail.
            try await stage.eventually("a refresh") { try await stage.refreshApp().status == 200 }
            #expect(try await stage.token("app") != token)
            #expect(try await stage.account("app")["error"] == nil)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `429 with a time: nobody asks before it`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            try await stage.fault(["kind": "status", "status": 429, "retry_after": 600])
            let before = try await stage.refreshes()
            for _ in 0..<2 {
                let answer = try await stage.refreshApp()
                #expect(answer.status == 429 && answer.code == "rate_limited", "\(answer)")
                #expect((590...600).contains(answer["retry_after"]?.integer ?? 0), "\(answer)")
            }
            #expect(try await stage.refreshes() == before + 1)
            #expect(try await stage.token("app") != nil)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `transport: a project that cannot be reached takes nothing away`(kind: String) async throws {
        // Not the usual stage: at its end the project is asked what it was shown.
        try await Stage.play(Stage.project) { stage in
            try await stage.setProject(["refresh_tokens": .string(kind)])
            _ = try await OtherProgram.share(on: stage)
            let token = try #require(try await stage.token("app"))
            let events = try await stage.listen()
            #expect(await stage.sandbox.stop())
            let answer = try await stage.refreshApp()
            #expect(answer.status == 503 && answer.code == "provider_unreachable", "\(answer)")
            // On loopback it is no matter of the person's internet.
            #expect(
                answer["user_message"] == "Service temporarily unavailable. Please try again later.", "\(answer)")
            #expect(try await events.next("refresh_failed")["error"]?["code"] == "provider_unreachable")
            try await stage.restartAfterKill()
            #expect(try await stage.token("app") == token)
            #expect(try await stage.isHeld())
        }
    }
}
