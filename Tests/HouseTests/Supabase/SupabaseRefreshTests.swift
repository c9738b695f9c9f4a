// The rules for each response of a project are tested in SupabaseSignInTests and SupabaseAuthTests.

import RingbackBase
import Testing

@Suite struct `Refresh of a Supabase session` {
    @Test func `the refresh token of the last response is on disk before the caller has its answer`() async throws {
        try await Stage.playShared("v1") { stage, _ in
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

    @Test func `a daemon that is killed before a refresh is answered repeats it at its start`() async throws {
        try await Stage.playShared("v2") { stage, _ in
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

    @Test func `a lost response that changes the kind of token is requested again without a caller`() async throws {
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

    @Test func `a session that the project ended leaves the disk, and everyone is told the reason`() async throws {
        let word = "user_banned"
        try await Stage.playShared("v2") { stage, _ in
            let subject = try await stage.account("app")["subject"]
            let events = try await stage.listen()
            try await stage.setProject(["ban": ["mira@example.org"]])
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
            #expect(message?.string == "This account is blocked.")
        }
    }

    @Test func `a refresh that fails for now keeps the session, and the account names the error`() async throws {
        let code = "provider_unreachable"
        try await Stage.playShared("v2") { stage, _ in
            let token = try #require(try await stage.token("app"))
            let events = try await stage.listen()
            try await stage.fault(["kind": "status", "status": 503], isLasting: true)
            let answer = try await stage.refreshApp()
            #expect(answer.status == 503 && answer.code == code, "\(answer)")
            let event = try await events.next("refresh_failed")
            #expect(event["error"]?["code"]?.string == code && event["subject"] != nil, "\(event.text)")
            #expect(try await stage.token("app") == token)
            // A refresh that nobody asked for clears the error while it is under way.
            try await stage.eventually("\(code) in the account") {
                try await stage.account("app")["error"]?["code"]?.string == code
            }
            try await stage.restartAfterKill()
            #expect(try await stage.token("app") == token)
            // Tokens of one second are the same text.
            try await stage.switchProject(["clear": true, "advance_clock": 2])
            // What was under way when it ended may still fail.
            try await stage.eventually("a refresh") { try await stage.refreshApp().status == 200 }
            #expect(try await stage.token("app") != token)
            #expect(try await stage.account("app")["error"] == nil)
        }
    }
}
