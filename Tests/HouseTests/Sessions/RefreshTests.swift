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
                let ended = try await program.end().expect(0)
                lines.insert(ended.out)
            }
            #expect(try await refresh.end().status == 0)
            #expect(lines.count == 1)
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)
        }
    }

    @Test func `a session that the provider has ended is removed, and every answer says so`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(["revoke_all": true])
            let answer = try await stage.api("GET", "/v1/accounts/work/session", status: 401, code: "session_expired")
            #expect(answer["user_message"]?.string == "Session expired. Please sign in again.")
            try await stage.ringback("token", "work", status: 3, says: "ringback login work")
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

    @Test func `a provider that is down is told once, in the language of the user`() async throws {
        try await Stage.playSignedIn { stage in
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "status", "status": 503]]
            ])
            for (language, message) in [
                ("C.UTF-8", "Service temporarily unavailable. Please try again later."),
                ("ru_RU.UTF-8", "Сервис временно недоступен. Попробуйте позже."),
            ] {
                let refresh = try await stage.ringback("refresh", "work", "--force", environment: ["LANG": language])
                #expect(refresh.status != 0 && refresh.err.contains(message), "\(refresh)")
                #expect(!refresh.err.contains("Try again later."), "\(refresh)")
            }
        }
    }
}
