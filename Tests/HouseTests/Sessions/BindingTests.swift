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
    @Test func `another issuer never sees its tokens, and it is back when the issuer is`() async throws {
        try await Stage.play(sandboxArguments: ["--no-rotation"]) { stage in
            let other = try await stage.startSandbox()
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            let secret = try await refreshToken(stage)
            let token = try #require(try await stage.token())

            try stage.write(configuration: configuration(other.origin))
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.account()["state"]?.string == "unauthenticated")
            let session = try await stage.api("GET", "/v1/accounts/work/session")
            #expect(session.status == 401 && session.code == "sign_in_required", "\(session)")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 401)
            #expect(try await stage.ringback("logout", "work").status == 0)
            // A whole life at the new one.
            try await stage.signIn(as: "bob")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.account()["subject"]?.string == "bob")
            #expect(try await stage.ringback("logout", "work").status == 0)
            let log = try await other.logText()
            #expect(log.contains("refresh_token") && !log.contains(secret) && !log.contains(token))
            // Nor was the old one told anything.
            #expect(try await stage.sandbox.counters()["revocations"] == 0)

            try stage.write(configuration: configuration(stage.sandbox.origin))
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.token() == token)
            #expect(try await stage.account()["subject"]?.string == "alice")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await refreshToken(stage) == secret)
        }
    }

    @Test func `another client of the same issuer has no part in it`() async throws {
        try await Stage.play(sandboxArguments: ["--no-rotation", "--client", "other"]) { stage in
            try await stage.signIn()
            let token = try await stage.token()
            try stage.write(configuration: configuration("{sandbox}", client: "other"))
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 401)
            try stage.write(configuration: configuration("{sandbox}"))
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.token() == token)
        }
    }

    @Test func `a removed account's session is set aside, and back with the account`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let token = try await stage.token()
            let events = try stage.start("ringback", ["events", "--json"])
            _ = try await events.line()
            try stage.write(configuration: "")
            #expect(try await stage.ringback("reload").status == 0)
            _ = try await events.line("signed_out") { $0.contains("\"signed_out\"") }
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 404)
            try stage.write(configuration: Stage.twoAccounts)
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.token() == token)
            _ = try await events.line("signed_in") { $0.contains("\"signed_in\"") }
            let counters = try await stage.sandbox.counters()
            #expect(counters["revocations"] == 0 && counters.tokenRequests("refresh_token") == 0)
        }
    }

    @Test func `a pending flow is cancelled when its account changes, and no other`() async throws {
        try await Stage.play { stage in
            let work = try stage.start("ringback", ["login", "work", "--no-browser"])
            let url = try await work.line()
            let callback = try await Browser.signIn(at: url)
            let home = try stage.start("ringback", ["login", "home", "--no-browser"])
            let homeURL = try await home.line()
            try stage.write(
                configuration: Stage.twoAccounts.replacing(
                    "issuer = \"{sandbox}\"", with: "issuer = \"{sandbox}/tenant-b\""))
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await work.end().status == 4)
            #expect(try await Browser.load(callback).location == "/unknown")
            #expect(try await stage.sandbox.counters().requests("token") == 0)
            #expect(try await stage.sandbox.counters(issuer: "/tenant-b").requests("token") == 0)
            _ = try await Browser.deliver(Browser.signIn(at: homeURL))
            #expect(try await home.end().status == 0)
        }
    }

    @Test func `a refresh under way when the issuer changes ends at the old one alone`() async throws {
        try await Stage.play { stage in
            try await stage.signInExpired()
            try await stage.sandbox.control(["faults": [["endpoint": "token", "kind": "gate"]]])
            async let waiting = stage.api("GET", "/v1/accounts/work/session")
            try await stage.sandbox.wait("token")
            try stage.write(configuration: configuration("{sandbox}/tenant-b"))
            #expect(try await stage.ringback("reload").status == 0)
            try await stage.sandbox.control(["clear": true])
            #expect(try await waiting.status == 401)
            #expect(try await stage.sandbox.counters(issuer: "/tenant-b").requests("token") == 0)
            // The rotated token was kept for the way back.
            try stage.write(configuration: configuration("{sandbox}"))
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.sandbox.counters()["reuse_detections"] == 0)
        }
    }

    @Test func `a restart with another issuer shows it nothing, and finds it again with its own`() async throws {
        try await Stage.play(sandboxArguments: ["--no-rotation"]) { stage in
            let other = try await stage.startSandbox()
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            let secret = try await refreshToken(stage)
            let token = try await stage.token()
            #expect(try await stage.stopDaemon().status == 0)
            try stage.write(configuration: configuration(other.origin))
            try await stage.startDaemon()
            try await stage.expectNothingHeld(error: nil)
            try await stage.signIn(as: "bob")
            #expect(try await stage.stopDaemon().status == 0)
            #expect(try await !other.logText().contains(secret))
            try stage.write(configuration: configuration("{sandbox}"))
            try await stage.startDaemon()
            #expect(try await stage.token() == token)
            #expect(try await stage.account()["subject"]?.string == "alice")
            // No session was ended: ending one is for people.
            #expect(try await stage.sandbox.counters()["revocations"] == 0)
        }
    }
}
