import RingbackBase
import Testing

@Suite struct `A session belongs to its issuer` {
    /// The refresh token that a sandbox has seen last. Refreshes keep it, since these stages do not rotate.
    private func refreshToken(_ stage: Stage) async throws -> String {
        let log = try await stage.sandbox.log()
        return try #require(
            log.last { $0["parameters"]?["refresh_token"] != nil }?["parameters"]?["refresh_token"]?.string)
    }

    private func configuration(_ issuer: String, client: String = "ringback-demo") -> String {
        """
        [accounts.work]
        issuer = "\(issuer)"
        client_id = "\(client)"
        scopes = ["openid", "email", "offline_access"]

        """
    }

    /// SK-13, ADV-13.
    @Test func `a changed issuer never gets the session, which returns with its issuer`() async throws {
        try await Stage.play(sandboxArguments: ["--no-rotation"]) { stage in
            let other = try await stage.startSandbox()
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            let secret = try await refreshToken(stage)
            let token = try #require(try await stage.token())

            try stage.write(configuration: configuration(other.origin))
            try await stage.ringback("reload", status: 0)
            #expect(try await stage.account()["state"]?.string == "unauthenticated")
            try await stage.api("GET", "/v1/accounts/work/session", status: 401, code: "sign_in_required")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 401)
            try await stage.ringback("logout", "work", status: 0)
            // A whole life at the new one.
            try await stage.signIn(as: "bob")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.account()["subject"]?.string == "bob")
            try await stage.ringback("logout", "work", status: 0)
            let log = try await other.logText()
            #expect(log.contains("refresh_token") && !log.contains(secret) && !log.contains(token))
            // Nor was the old one told anything.
            #expect(try await stage.sandbox.counters()["revocations"] == 0)

            try stage.write(configuration: configuration(stage.sandbox.origin))
            try await stage.ringback("reload", status: 0)
            #expect(try await stage.token() == token)
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await refreshToken(stage) == secret)
        }
    }
}
