import RingbackBase
import Testing

@Suite struct `A session that cannot be renewed` {
    private let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email"]

        """

    @Test func `an expired session without a refresh token names offline_access`() async throws {
        try await Stage.play(configuration) { stage in
            try await stage.sandbox.control(["refresh_tokens": "offline_access"])
            try await stage.signIn()
            #expect(try await stage.account()["error"] == nil)
            let refresh = try await stage.api("POST", "/v1/accounts/work/refresh", status: 409)
            #expect(refresh["detail"]?.string?.contains("offline_access") == true, "\(refresh)")
            try await stage.signInExpired()
            let session = try await stage.api("GET", "/v1/accounts/work/session", status: 401, code: "sign_in_required")
            #expect(session["detail"]?.string?.contains("offline_access") == true, "\(session)")
            #expect(session["recovery"]?.string == "sign_in")
            let account = try await stage.account()
            #expect(account["state"]?.string == "authenticated" && account["stale"]?.bool == true, "\(account.text)")
            #expect(account["error"]?["code"]?.string == "sign_in_required", "\(account.text)")
            try await stage.ringback("token", "work", status: 3, out: "", says: "offline_access")
            try await stage.signIn()
            #expect(try await stage.account()["error"] == nil)
            #expect(try await stage.token() != nil)
        }
    }
}
