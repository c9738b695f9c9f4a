import RingbackBase
import Testing

/// What a request for a token with fewer scopes may do to the session at providers that do not keep RFC 6749 section 6.
@Suite struct `A session whose provider downscopes in its own way` {
    private static let account = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "profile", "offline_access"]

        """

    private func scopes(_ stage: Stage) async throws -> [String?] {
        try await stage.sandbox.log().filter { $0["endpoint"] == "token" }.compactMap { $0["parameters"] }
            .filter { $0["grant_type"] == "refresh_token" }.map { $0["scope"]?.string }
    }

    @Test func `a session that lost scopes says so everywhere, and a sign-in restores them`() async throws {
        try await Stage.play(Self.account) { stage in
            try await stage.sandbox.control(["downscope_refresh_tokens": true])
            try await stage.signIn()
            try await stage.ringback(
                "token", "work", "--scope", "email", status: 0, says: "lost the scope openid profile",
                "ringback login work")
            let printed = try await stage.ringback("token", "work", "--scope", "email", "--format", "json")
            #expect(try JSON(parsing: Array(printed.out.utf8))["lost_scope"] == "openid profile", "\(printed)")
            #expect(try await scopes(stage) == ["email", "email offline_access openid profile", nil])
            for isRestarted in [false, true] {
                if isRestarted {
                    try await stage.stopDaemon()
                    try await stage.startDaemon()
                    #expect(try await stage.token() != nil)
                }
                let account = try await stage.account()
                #expect(account["lost_scope"] == "openid profile", "\(account.text)")
                #expect(account["state"] == "authenticated" && account["error"] == nil, "\(account.text)")
                #expect(account["notice"]?.string?.contains("openid profile") == true, "\(account.text)")
                let accounts = try await stage.ringback("accounts")
                #expect(accounts.out.contains("lost the scope openid profile"), "\(accounts)")
                #expect(accounts.out.contains("ringback login work"), "\(accounts)")
                let doctor = try await stage.ringback("doctor", "work")
                #expect(
                    doctor.out.contains("openid profile") && doctor.out.contains("ringback login work"), "\(doctor)")
                let audit = try await stage.ringback("audit", "--json")
                #expect(audit.out.contains("scopes_lost"), "\(audit)")
                // The session goes on with what is left, and the provider is not asked to downscope again.
                try await stage.ringback("refresh", "work", "--force", status: 0)
                let before = try await scopes(stage).count
                try await stage.ringback("token", "work", "--scope", "profile", status: 1, says: "fewer scopes")
                #expect(try await scopes(stage).count == before)
            }
            try await stage.signIn()
            #expect(try await stage.account()["lost_scope"] == nil)
            #expect(try await stage.ringback("session", "work").out.contains("openid"))
            try await stage.ringback("token", "work", "--scope", "profile", status: 1)
            // A restricted socket exchanges a token instead.
            let exposed = try await stage.ringback("expose", "ci", "--account", "work", "--scope", "profile")
            try await stage.ringback(
                "token", "work", environment: ["RINGBACK_SOCK": exposed.out.filter { $0 != "\n" }], status: 0)
            #expect(try await stage.account()["lost_scope"] == nil)
        }
    }

    @Test func `a token with more scope than requested is warned of`() async throws {
        try await Stage.playSignedIn(Self.account) { stage in
            try await stage.sandbox.control(["perturb": ["token_whole_scope"]])
            let token = try await stage.ringback(
                "token", "work", "--scope", "email", status: 0, says: "more scope", "openid profile")
            #expect(!token.out.isEmpty, "\(token)")
            let own = try await stage.ringback("token", "work", status: 0)
            #expect(own.err.isEmpty, "\(own)")
        }
    }
}
