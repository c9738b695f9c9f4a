import Glibc
import RingbackBase
import Testing

extension `A session that needs a refresh` {
    @Test func `that is refused without a word says so after five times, and is still there`() async throws {
        try await Stage.play(sandboxArguments: ["--no-rotation"]) { stage in
            try await stage.signInExpired()
            let fault: JSON = ["endpoint": "token", "kind": "empty", "status": 400]
            try await stage.sandbox.control(["faults": [fault]])
            for attempt in 1...6 {
                let refresh = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
                let (status, code) =
                    attempt < 5 ? (502, "invalid_provider_response") : (401, "refresh_refused")
                #expect(refresh.status == status && refresh.code == code, "\(attempt): \(refresh)")
            }
            let session = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(session.status == 401 && session["recovery"] == "sign_in", "\(session)")
            let token = try await stage.ringback("token", "work")
            #expect(token.status == 3 && token.err.contains("ringback login work"), "\(token)")
            #expect(token.err.contains("HTTP status 400"), "\(token)")
            let account = try await stage.account()
            #expect(account["state"] == "authenticated" && account["stale"] == true, "\(account.text)")
            #expect(account["error"]?["code"] == "refresh_refused" && account["subject"] == "alice")
            let accounts = try await stage.ringback("accounts")
            #expect(accounts.out.contains("The session cannot be renewed. Please sign in again."), "\(accounts)")
            try await stage.sandbox.control(["clear": true])
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.account()["error"] == nil)
        }
    }

    @Test func `presents the older refresh token after invalid_grant for the newer`() async throws {
        try await Stage.play(sandboxArguments: ["--no-rotation"]) { stage in
            try await stage.signInExpired()
            // A rotation whose answer is not valid, by a server that then forgets the successor.
            try await stage.sandbox.control([
                "perturb": [["name": "token_rotates", "count": 1], ["name": "token_no_access_token", "count": 1]],
                "reuse_grace": 60,
            ])
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 502)
            try await stage.sandbox.control([
                "faults": [
                    [
                        "endpoint": "token", "kind": "error", "error": "invalid_grant", "count": 1,
                        "processed": false,
                    ]
                ]
            ])
            let refresh = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            #expect(refresh.status == 200, "\(refresh)")
            let presented = try await stage.sandbox.log().compactMap { $0["parameters"]?["refresh_token"]?.string }
            #expect(presented.count == 3, "\(presented)")
            #expect(presented.first == presented.last && presented[1] != presented[0])
        }
    }

    @Test func `ends when the provider has ended it`() async throws {
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

    @Test func `speaks the person's language where a person should see something`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(["revoke_all": true])
            let answer = try await stage.api(
                "GET", "/v1/accounts/work/session", fields: [("Accept-Language", "ru-RU,ru;q=0.9,en;q=0.8")])
            #expect(answer["user_message"]?.string == "Сеанс истёк. Войдите снова.")
        }
    }
}
