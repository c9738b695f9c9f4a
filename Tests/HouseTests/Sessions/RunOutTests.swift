// Sessions that cannot be renewed: by the provider's habit, or because it wants the person first.

import RingbackBase
import Testing

@Suite struct `A session that cannot be renewed` {
    private let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email"]

        """

    @Test func `says so when it has run out, and what to ask for next time`() async throws {
        try await Stage.play(configuration) { stage in
            try await stage.sandbox.control(["refresh_tokens": "offline_access"])
            try await stage.signIn()
            #expect(try await stage.account()["error"] == nil)
            let refresh = try await stage.api("POST", "/v1/accounts/work/refresh")
            #expect(
                refresh.status == 409 && refresh["detail"]?.string?.contains("offline_access") == true, "\(refresh)")
            try await stage.signInExpired()
            let session = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(session.status == 401 && session.code == "sign_in_required", "\(session)")
            #expect(session["detail"]?.string?.contains("offline_access") == true, "\(session)")
            #expect(session["recovery"]?.string == "sign_in")
            let account = try await stage.account()
            #expect(account["state"]?.string == "authenticated" && account["stale"]?.bool == true, "\(account.text)")
            #expect(account["error"]?["code"]?.string == "sign_in_required", "\(account.text)")
            let token = try await stage.ringback("token", "work")
            #expect(token.status == 3 && token.out.isEmpty && token.err.contains("offline_access"), "\(token)")
            try await stage.signIn()
            #expect(try await stage.account()["error"] == nil)
            #expect(try await stage.token() != nil)
        }
    }

    @Test(arguments: ["interaction_required", "login_required", "consent_required"])
    func `because the provider wants the person is kept, and sends to the sign-in`(code: String) async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control([
                "faults": [
                    ["endpoint": "token", "grant_type": "refresh_token", "kind": "error", "error": .string(code)]
                ]
            ])
            let answer = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            #expect(answer.status == 422 && answer["provider_code"]?.string == code, "\(answer)")
            #expect(answer["recovery"]?.string == "sign_in")
            #expect(try await stage.account()["state"]?.string == "authenticated")
            try await stage.sandbox.control(["clear": true])
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
        }
    }
}
