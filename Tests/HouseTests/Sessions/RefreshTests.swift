import Glibc
import RingbackBase
import Testing

/// Holds every refresh until the sandbox is cleared.
private let refreshGate: JSON = [
    "faults": [["endpoint": "token", "grant_type": "refresh_token", "kind": "gate"]]
]

@Suite struct `A session that needs a refresh` {
    @Test func `PR-16, RT-04: an expired session is refreshed once for ten programs`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(refreshGate)
            // It comes first, so that it joins nothing; the others join it, or come after and find it done.
            let refresh = try stage.start("ringback", ["refresh", "work"])
            try await stage.sandbox.wait("token")
            let programs = try (0..<10).map { _ in try stage.start("ringback", ["token", "work"]) }
            try await stage.sandbox.control(["clear": true])
            var lines: Set<String> = []
            for program in programs {
                let ended = try await program.end()
                #expect(ended.status == 0, "\(ended)")
                lines.insert(ended.out)
            }
            #expect(try await refresh.end().status == 0)
            #expect(lines.count == 1)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)
        }
    }

    @Test func `a provider that hangs does not delay the accounts of other providers`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired("work")
            try await stage.signInExpired("home", issuer: "/tenant-a", as: "bob")
            try await stage.sandbox.control(["faults": [["endpoint": "token", "kind": "hang"]]])
            async let frozen = stage.api("GET", "/v1/accounts/work/session?timeout=3")
            try await stage.sandbox.wait("token")
            for _ in 0..<5 {
                #expect(try await stage.token("home") != nil)
                #expect(try await stage.api("POST", "/v1/accounts/home/refresh", ["force": true]).status == 200)
            }
            // The other was not waited for.
            try await stage.sandbox.wait("token")
            #expect(try await stage.account("work")["state"]?.string == "refreshing")
            let answer = try await frozen
            #expect(answer.status == 504 && answer.code == "timeout", "\(answer)")
            // The exchange and one refresh.
            #expect(try await stage.sandbox.counters().requests("token") == 2)
        }
    }

    @Test(
        arguments: [
            (["kind": "status", "status": 500], 503, "provider_unreachable"),
            (["kind": "redirect", "to": "http://127.0.0.1:9/steal"], 502, "invalid_provider_response"),
            (["kind": "error", "error": "invalid_client", "status": 401], 422, "provider_error"),
        ] as [(JSON, Int, String)]) func `PR-10, PR-03: an invalid or failed refresh response keeps the session`(
            fault: JSON, status: Int, code: String
        )
        async throws
    {
        // Without rotation: what a broken answer carried away is another matter.
        try await Stage.play(sandboxArguments: ["--no-rotation"]) { stage in
            try await stage.signInExpired()
            var object = fault.object ?? JSONObject()
            object["endpoint"] = "token"
            try await stage.sandbox.control(["faults": [.object(object)]])
            let answer = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(answer.status == status && answer.code == code, "\(answer)")
            let account = try await stage.account()
            #expect(account["subject"]?.string == "alice" && account["stale"]?.bool == true, "\(account.text)")
            #expect(account["error"]?["code"]?.string == code, "\(account.text)")
            try await stage.sandbox.control(["clear": true])
            let refresh = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            #expect(refresh.status == 200, "\(refresh)")
            #expect(refresh["error"] == nil && refresh["stale"] == nil)
            #expect(try await stage.token() != nil)
        }
    }

    @Test(arguments: ["id_token_other_subject", "id_token_wrong_signature"])
    func `PR-18: no token of a refresh response with an invalid ID token is served`(lie: String) async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            // After a response of another user, our own refresh token is presented again.
            try await stage.sandbox.control(["perturb": [["name": .string(lie), "count": 1]], "reuse_grace": 60])
            let answer = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(answer.status == 502 && answer["access_token"] == nil, "\(answer)")
            let account = try await stage.account()
            #expect(account["subject"]?.string == "alice")
            #expect(account["error"]?["code"]?.string == "invalid_provider_response", "\(account.text)")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.sandbox.counters()["reuse_detections"] == 0)
        }
    }

    @Test func `signing out during a refresh revokes the newest tokens`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(refreshGate)
            async let session = stage.api("GET", "/v1/accounts/work/session")
            try await stage.sandbox.wait("token")
            async let signOut = stage.api("DELETE", "/v1/accounts/work/session")
            // Readers see at once that it is over, while the refresh is still under way.
            var state: String?
            while state != "unauthenticated" {
                state = try await stage.account()["state"]?.string
                if try await stage.sandbox.counters()["refreshes"] > 0 { break }
            }
            #expect(state == "unauthenticated")
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 401)
            try await stage.sandbox.control(["clear": true])
            #expect(try await signOut.status == 200)
            #expect(try await session.status == 401)
            let log = try await stage.sandbox.log()
            let revoked = log.filter { $0["endpoint"]?.string == "revocation" }
                .compactMap { $0["parameters"]?["token"]?.string }
            let presented = log.compactMap { $0["parameters"]?["refresh_token"]?.string }
            #expect(revoked.contains { $0.hasPrefix("rt-") && !presented.contains($0) }, "\(revoked)")
            try await stage.expectNothingHeld(error: nil)
        }
    }

    @Test func `a session that the provider has ended is removed, and every answer says so`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(["revoke_all": true])
            let answer = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(answer.status == 401 && answer.code == "session_expired", "\(answer)")
            #expect(answer["user_message"]?.string == "Session expired. Please sign in again.")
            let token = try await stage.ringback("token", "work")
            #expect(token.status == 3 && token.err.contains("ringback login work"), "\(token)")
            let account = try await stage.account()
            #expect(account["state"]?.string == "unauthenticated" && account["subject"] == nil)
            #expect(account["error"]?["code"]?.string == "session_expired")
            let accounts = try await stage.ringback("accounts")
            #expect(accounts.out.contains("Session expired. Please sign in again."), "\(accounts)")
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)
            try await stage.signIn()
            #expect(try await stage.account()["error"] == nil)
        }
    }
}
