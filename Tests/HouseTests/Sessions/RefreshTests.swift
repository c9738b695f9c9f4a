import Glibc
import RingbackBase
import Testing

/// Holds every refresh until the sandbox is cleared.
private let refreshGate: JSON = [
    "faults": [["endpoint": "token", "grant_type": "refresh_token", "kind": "gate"]]
]

@Suite struct `A session that needs a refresh` {
    @Test func `RT-04: is refreshed once for a hundred callers`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(refreshGate)
            let tokens = try await withThrowingTaskGroup(of: Answer.self) { group in
                for _ in 0..<100 { group.addTask { try await stage.api("GET", "/v1/accounts/work/session") } }
                try await stage.sandbox.wait("token")
                #expect(try await stage.account()["state"]?.string == "refreshing")
                try await stage.sandbox.control(["clear": true])
                return try await group.reduce(into: [String?]()) { $0.append($1["access_token"]?.string) }
            }
            #expect(tokens.count == 100)
            #expect(Set(tokens).count == 1 && tokens.first != .some(nil))
            let counters = try await stage.sandbox.counters()
            #expect(counters.tokenRequests("refresh_token") == 1 && counters["reuse_detections"] == 0, "\(counters)")
        }
    }

    @Test func `PR-16, RT-04: is refreshed once for ten programs`() async throws {
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

    @Test func `whose caller goes away is refreshed all the same`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(refreshGate)
            let program = try stage.start("ringback", ["token", "work"])
            try await stage.sandbox.wait("token")
            program.send(SIGKILL)
            _ = try await program.end()
            try await stage.sandbox.control(["clear": true])
            #expect(try await stage.token() != nil)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)
        }
    }

    @Test func `beside a frozen provider is served at once`() async throws {
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

    @Test func `waits as long as the provider says, and no caller can hurry it`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "status", "status": 429, "retry_after": 300, "count": 1]]
            ])
            for request in [("GET", "session"), ("GET", "session?min_valid=5"), ("POST", "refresh")] {
                let answer = try await stage.api(request.0, "/v1/accounts/work/\(request.1)")
                #expect(answer.status == 429 && answer.code == "rate_limited", "\(answer)")
                let seconds = answer["retry_after"]?.integer ?? 0
                #expect((270...300).contains(seconds))
                #expect(answer.fields["retry-after"] == String(seconds))
                #expect(answer["user_message"]?.string == "Too many attempts. Please wait a few minutes.")
            }
            let forced = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            #expect(forced.status == 429, "\(forced)")
            let token = try await stage.ringback("token", "work")
            #expect(token.status == 5 && token.out.isEmpty && token.err.contains("Try again in"), "\(token)")
            // The exchange and one refresh.
            #expect(try await stage.sandbox.counters().requests("token") == 2)
            let account = try await stage.account()
            #expect(account["state"]?.string == "authenticated" && account["stale"]?.bool == true)
            #expect(account["subject"]?.string == "alice" && account["error"]?["code"]?.string == "rate_limited")
        }
    }

    @Test(
        arguments: [
            (["kind": "status", "status": 500], 503, "provider_unreachable"),
            (["kind": "html"], 502, "invalid_provider_response"),
            (["kind": "redirect", "to": "http://127.0.0.1:9/steal"], 502, "invalid_provider_response"),
            (["kind": "invalid_json"], 502, "invalid_provider_response"),
            (["kind": "empty", "status": 400], 502, "invalid_provider_response"),
            (["kind": "error", "error": "invalid_grant", "status": 404], 502, "invalid_provider_response"),
            (["kind": "error", "error": "invalid_grant", "status": 503], 503, "provider_unreachable"),
            (["kind": "error", "error": "invalid_client", "status": 401], 422, "provider_error"),
        ] as [(JSON, Int, String)]) func `PR-10, PR-03: survives a provider's mistake`(
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

    @Test func `keeps a rotated refresh token that came without an access token`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(["perturb": [["name": "token_no_access_token", "count": 1]]])
            let answer = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(answer.status == 502 && answer.code == "invalid_provider_response", "\(answer)")
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            // Each was presented once, the newer first: nothing looked stolen.
            let presented = try await stage.sandbox.log().compactMap { $0["parameters"]?["refresh_token"]?.string }
            #expect(presented.count == 3 && Set(presented).count == 3, "\(presented)")
            let counters = try await stage.sandbox.counters()
            #expect(counters["reuse_detections"] == 0 && counters["rotations"] == 3, "\(counters)")
        }
    }

    @Test(arguments: [
        "id_token_other_subject", "id_token_wrong_issuer", "id_token_wrong_audience", "id_token_wrong_signature",
        "token_other_subject",
    ]) func `PR-18: serves no token of an answer that fails on whose it is`(lie: String) async throws {
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

    @Test(arguments: ["id_token_expired", "id_token_other_auth_time"])
    func `NAT-53: serves the access token beside an odd ID token, and keeps the former ID token`(
        lie: String
    ) async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(["perturb": [["name": .string(lie), "count": 1]]])
            #expect(try await stage.token() != nil)
            let account = try await stage.account()
            #expect(account["subject"] == "alice" && account["error"] == nil, "\(account.text)")
            #expect(try await stage.ringback("audit", "--json").out.contains("id_token_dropped"))
        }
    }

    @Test func `that the provider made not refreshable ends with its token`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control(["refresh_tokens": "never"])
            try await stage.signIn()
            #expect(try await stage.token() != nil)
            let refresh = try await stage.api("POST", "/v1/accounts/work/refresh")
            #expect(refresh.status == 409 && refresh.code == "state_conflict", "\(refresh)")
            let demanding = try await stage.api("GET", "/v1/accounts/work/session?min_valid=600")
            #expect(demanding.status == 200, "\(demanding)")
            try await stage.signInExpired()
            let expired = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(expired.status == 401 && expired.code == "sign_in_required", "\(expired)")
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 0)
        }
    }

    @Test func `is not refreshed for a token that another caller has replaced already`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let other: JSON = ["rejected_sha256": .string(String(repeating: "0", count: 64))]
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", other).status == 200)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 0)
            let wrong = try await stage.api("POST", "/v1/accounts/work/refresh", ["rejected_sha256": "zz"])
            #expect(wrong.status == 400 && wrong.code == "validation_failed")
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
}
