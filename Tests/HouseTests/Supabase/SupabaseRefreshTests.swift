// Refreshes of a Supabase session by the real daemon: what is on disk when it is killed, and what callers, listeners
// and the account are told. The rules for each response of a project are tested in SupabaseSignInTests and
// SupabaseAuthTests.

import RingbackBase
import Testing

@Suite struct `Refresh of a Supabase session` {
    @Test(arguments: Stage.tokenKinds)
    func `the refresh token of the last response is on disk before the caller has its answer`(kind: String) async throws
    {
        try await Stage.playShared(kind) { stage, _ in
            for _ in 0..<2 {
                try await stage.expectAlive()
                try await stage.restartAfterKill()
                #expect(try await stage.token("app") != nil)
                // A project answers an older token too, but then it does not rotate.
                let before = try await stage.sandbox.counters(issuer: "/supabase")["rotations"]
                try await stage.expectAlive()
                #expect(try await stage.sandbox.counters(issuer: "/supabase")["rotations"] == before + 1)
                try await stage.advance(60)
            }
            let tokens = try await stage.presented()
            #expect(Set(tokens).count == tokens.count)
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `a daemon that is killed before a refresh is answered repeats it at its start`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            try await stage.fault(["kind": "gate", "processed": true])
            let caller = try stage.connect()
            await caller.send(Stage.request("POST", "/v1/accounts/app/refresh", #"{"force":true}"#))
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            let before = try await stage.refreshes()
            try await stage.restartAfterKill()
            try await stage.eventually("the refresh of an attempt that was left open") {
                let account = try await stage.account("app")
                return try await stage.refreshes() > before && account["state"] == "authenticated"
            }
            try await stage.switchProject(["clear": true, "advance_clock": 1_800])
            try await stage.expectAlive()
        }
    }

    @Test func `a lost response to the refresh that changes the kind of token is requested again without a caller`()
        async throws
    {
        try await Stage.playShared("v1", [("reuse_interval", 600)]) { stage, _ in
            try await stage.setProject(["refresh_tokens": "v2", "upgrade": 100])
            let before = try await stage.sandbox.counters(issuer: "/supabase")["refreshes"]
            try await stage.fault(["kind": "status", "status": 504, "processed": true])
            #expect(try await stage.refreshApp().status == 503)
            try await stage.eventually("another refresh") {
                try await stage.sandbox.counters(issuer: "/supabase")["refreshes"] >= before + 2
            }
            // The server has counted it; the daemon must have read the answer, or the next one joins it.
            try await stage.eventually("what it answered") {
                try await stage.account("app")["state"]?.string == "authenticated"
            }
            // The older token is not accepted any more after the interval.
            try await stage.advance(1_800)
            try await stage.expectAlive()
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `a session that another program has refreshed is refreshed with the older token`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, program in
            // Twice: to the daemon's token, and one further. Now the daemon is one step behind.
            #expect(try await program.refresh().status == 200)
            #expect(try await program.refresh().status == 200)
            try await stage.advance(1_800)
            try await stage.expectAlive()
            try await stage.expectAlive()
        }
    }

    // MARK: Ends

    private static let ends: [(word: String, settings: JSON)] = [
        ("refresh_token_not_found", ["end_sessions": true]), ("session_expired", ["not_after": 60]),
        ("user_banned", ["ban": ["mira@example.org"]]), ("refresh_token_already_used", [:]),
    ]

    @Test(arguments: ends.indices)
    func `a session that the project has ended leaves the disk, and caller, events and account name the reason`(
        index: Int
    ) async throws {
        let (word, settings) = Self.ends[index]
        try await Stage.playShared("v2") { stage, program in
            let subject = try await stage.account("app")["subject"]
            let events = try await stage.listen()
            if settings == [:] {
                for _ in 0..<3 { #expect(try await program.refresh().status == 200) }
            } else {
                try await stage.setProject(settings)
            }
            try await stage.advance(120)
            let before = try await stage.refreshes()
            try await stage.expectDead(word)
            #expect(try await stage.refreshes() == before + 1)
            for kind in ["refresh_failed", "signed_out"] {
                let event = try await events.next(kind)
                #expect(event["error"]?["code"] == "session_expired", "\(kind) \(event.text)")
                #expect(event["error"]?["provider_code"]?.string == word, "\(kind) \(event.text)")
                if kind == "signed_out" { #expect(event["subject"] == subject && event["state"] == "unauthenticated") }
            }
            try await stage.restartAfterKill()
            try await stage.expectNobody(word)
            #expect(try await stage.refreshes() == before + 1)
            let message = try await stage.api("GET", "/v1/accounts/app/session")["user_message"]
            let ended = "Session expired. Please sign in again."
            #expect(message?.string == (word == "user_banned" ? "This account is blocked." : ended))
        }
    }

    // MARK: Outages

    private static let outages: [(trouble: JSON, status: Int, code: String)] = [
        (["faults": [Stage.fault(["kind": "status", "status": 503], isLasting: true)]], 503, "provider_unreachable"),
        (["faults": [Stage.fault(["kind": "status", "status": 429], isLasting: true)]], 429, "rate_limited"),
        (
            ["faults": [Stage.fault(["kind": "html", "status": 200], isLasting: true)]], 502,
            "invalid_provider_response"
        ),
        (["supabase": ["token_hook": ["status": 403, "message": "Not on Sundays."]]], 422, "provider_error"),
        (["supabase": ["api_keys": ["another"]]], 400, "invalid_configuration"),
    ]

    /// Ends every trouble of the table.
    private static let over: JSON = [
        "clear": true, "supabase": ["token_hook": .null, "api_keys": ["sb_publishable_sandbox"]],
        // Tokens of one second are the same text.
        "advance_clock": 2,
    ]

    @Test(arguments: outages.indices)
    func `a refresh that fails for now keeps the session, also over a restart, and the account names the error`(
        index: Int
    ) async throws {
        let (trouble, status, code) = Self.outages[index]
        try await Stage.playShared("v2") { stage, _ in
            let token = try #require(try await stage.token("app"))
            let events = try await stage.listen()
            try await stage.switchProject(trouble)
            let answer = try await stage.refreshApp()
            #expect(answer.status == status && answer.code == code, "\(answer)")
            let event = try await events.next("refresh_failed")
            #expect(event["error"]?["code"]?.string == code && event["subject"] != nil, "\(event.text)")
            #expect(try await stage.token("app") == token)
            // A refresh that nobody asked for clears the error while it is under way.
            try await stage.eventually("\(code) in the account") {
                try await stage.account("app")["error"]?["code"]?.string == code
            }
            try await stage.restartAfterKill()
            #expect(try await stage.token("app") == token)
            try await stage.switchProject(Self.over)
            // What was under way when it ended may still fail.
            try await stage.eventually("a refresh") { try await stage.refreshApp().status == 200 }
            #expect(try await stage.token("app") != token)
            #expect(try await stage.account("app")["error"] == nil)
        }
    }
}
