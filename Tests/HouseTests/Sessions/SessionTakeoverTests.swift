import RingbackBase
import Testing

@Suite struct `A session of another program` {
    /// An account at the sandbox, where another program has signed in with the same client, and that program's refresh token.
    private func tokenOfOther(on stage: Stage) async throws -> String {
        try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": "s3cret"]]])
        let token = try await ForeignAgent.refreshToken(on: stage)
        try await stage.sandbox.control(["clients": [["id": "ringback-demo"]]])
        try await stage.ringback(
            "account", "add", "mine", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo", "--scope",
            "openid", "--scope", "email", "--scope", "offline_access", status: 0)
        return token
    }

    private func takeOver(_ token: String, on stage: Stage) async throws -> Output {
        try await stage.ringback(
            "login", "mine", "--method", "session", "--refresh-token-fd", "0", stdin: token + "\n")
    }

    @Test func `login takes the session of a refresh token over, and replaces no session`() async throws {
        try await Stage.play("") { stage in
            let token = try await tokenOfOther(on: stage)
            let taken = try await takeOver(token, on: stage).expect(0, prints: "Signed in to mine as alice@example.org")
            #expect(!(taken.out + taken.err).contains(token), "\(taken)")
            let text = try #require(FileTree.text(of: "\(stage.dropIns)/mine.toml"))
            #expect(!text.contains(token), "\(text)")
            let held = try await stage.account("mine")
            #expect(held["state"] == "authenticated" && held["user"]?["email"] == "alice@example.org", "\(held)")
            #expect(try await stage.token("mine") != nil)
            try await stage.ringback("refresh", "mine", "--force", status: 0)

            // A session that is held is not replaced, and a token that is not accepted makes none.
            let second: JSON = ["method": "session", "refresh_token": "unknown"]
            #expect(try await stage.api("POST", "/v1/accounts/mine/sign-in", second).status == 409)
            try await stage.ringback("logout", "mine")
            let refused = try await stage.api("POST", "/v1/accounts/mine/sign-in", second, status: 400)
            #expect(refused["field"] == "refresh_token", "\(refused)")
            try await stage.api("POST", "/v1/accounts/mine/sign-in", ["method": "session"], status: 400)
            #expect(try await stage.account("mine")["state"] == "unauthenticated")
        }
    }

    /// Takes over a session of another program whose refresh token the sandbox replaces.
    private func takeOver(on stage: Stage, while switches: JSON) async throws -> Output {
        let token = try await tokenOfOther(on: stage)
        try await stage.sandbox.control(switches)
        return try await takeOver(token, on: stage)
    }

    private func presented(on stage: Stage) async throws -> [String] {
        try await stage.sandbox.log().compactMap { entry in
            guard entry["parameters"]?["grant_type"] == "refresh_token" else { return nil }
            return entry["parameters"]?["refresh_token"]?.string
        }
    }

    @Test func `a session that is taken over is kept but not served until its ID token can be checked`() async throws {
        try await Stage.play("") { stage in
            let away: JSON = ["faults": [["endpoint": "jwks", "kind": "status", "status": 503]]]
            try await takeOver(on: stage, while: away).expect(0)
            let held = try await stage.account("mine")
            let state = held["state"]?.string ?? ""
            #expect(["authenticated", "refreshing"].contains(state) && held["user"]?["email"] == nil, "\(held)")
            let none = try await stage.api("GET", "/v1/accounts/mine/session")
            #expect(none.status >= 500 && none["code"] == "provider_unreachable", "\(none)")

            try await stage.sandbox.control(["clear": true])
            try await stage.ringback("refresh", "mine", "--force", status: 0)
            #expect(try await stage.account("mine")["user"]?["email"] == "alice@example.org")
            #expect(try await stage.token("mine") != nil)
            // No refresh token was lost, and none was shown again after it was replaced.
            let presented = try await presented(on: stage)
            #expect(presented.count >= 3 && Set(presented).count == presented.count, "\(presented)")
            #expect(try await stage.sandbox.counters()["reuse_detections"] == 0)
        }
    }

    @Test(arguments: ["id_token_wrong_issuer", "userinfo_wrong_subject"])
    func `the new refresh token of a session that is not the account's is revoked`(
        perturbation: String
    ) async throws {
        try await Stage.play("") { stage in
            let taken = try await takeOver(on: stage, while: ["perturb": [.string(perturbation)]])
            #expect(taken.status != 0 && !taken.out.contains("Signed in"), "\(taken)")
            #expect(taken.err.contains("Nothing was stored.") && taken.err.contains("new one is revoked"), "\(taken)")
            #expect(try await stage.account("mine")["state"] == "unauthenticated")
            try await stage.sandbox.wait("revocation", count: 2, what: "seen")
            let revoked = try await stage.sandbox.log().filter { $0["endpoint"] == "revocation" }
            let hints = revoked.compactMap { $0["parameters"]?["token_type_hint"]?.string }
            #expect(hints == ["refresh_token", "access_token"], "\(revoked)")
            // It is the new one: the one that was handed in was shown once.
            let token = try #require(revoked.first?["parameters"]?["token"]?.string)
            let presented = try await presented(on: stage)
            #expect(presented.count == 1 && !presented.contains(token), "\(presented)")
        }
    }

    @Test func `a takeover needs no userinfo, and revokes no refresh token that was not replaced`() async throws {
        try await Stage.play("") { stage in
            let away: JSON = ["faults": [["endpoint": "userinfo", "kind": "status", "status": 503]]]
            try await takeOver(on: stage, while: away).expect(0)
            #expect(try await stage.token("mine") != nil)
            try await stage.ringback("logout", "mine")
        }
        try await Stage.play("") { stage in
            let switches: JSON = ["perturb": ["token_does_not_rotate", "id_token_wrong_issuer"]]
            let taken = try await takeOver(on: stage, while: switches)
            #expect(taken.status != 0 && !taken.err.contains("revoked"), "\(taken)")
            #expect(try await stage.sandbox.counters().requests("revocation") == 0)
        }
    }

    @Test(.enabled(if: ForeignAgent.isInstalled))
    func `the refresh token that oidc-gen prints takes its session over`() async throws {
        try await Stage.play("") { stage in
            let agent = try await ForeignAgent(on: stage)
            defer { agent.stop() }
            try await stage.sandbox.control(["clients": [["id": "ringback-demo"]]])
            try await stage.ringback(
                "account", "add", "mine", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo", "--scope",
                "openid", "--scope", "email", "--scope", "offline_access", status: 0)
            let printed = try await stage.run(
                "/usr/bin/oidc-gen", ["--print=mine", "--pw-cmd=echo \(ForeignAgent.passphrase)"],
                environment: agent.environment)
            let token = try #require(try printed.json["refresh_token"]?.string, "\(printed)")
            let taken = try await takeOver(token, on: stage).expect(0)
            #expect(!(taken.out + taken.err).contains(token), "\(taken)")
            #expect(try await stage.account("mine")["user"]?["email"] == "alice@example.org")
            // oidc-agent's account is as it was.
            let names = try await stage.run("/usr/bin/oidc-gen", ["--accounts"], environment: agent.environment)
            #expect(names.out.contains("mine"), "\(names)")
        }
    }
}
