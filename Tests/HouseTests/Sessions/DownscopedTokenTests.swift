import RingbackBase
import Testing

/// Downscoped tokens (RFC 8707, RFC 6749 section 6) and ID tokens, as `ringback token` gets them.
@Suite struct `A downscoped token` {
    private static let account = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "profile", "offline_access"]

        """

    private func answer(_ stage: Stage, _ arguments: String...) async throws -> JSON {
        let output = try await stage.run("ringback", ["token", "--format", "json"] + arguments)
        guard output.status == 0 else { throw Late(what: "a token, not \(output)") }
        return try JSON(parsing: Array(output.out.utf8))
    }

    private func refreshes(_ stage: Stage) async throws -> [JSON] {
        try await stage.sandbox.log().filter { $0["endpoint"] == "token" }.compactMap { $0["parameters"] }
            .filter { $0["grant_type"] == "refresh_token" }
    }

    @Test func `NAT-28: each downscoped token is requested once and kept over a restart`() async throws {
        try await Stage.playSignedIn(Self.account) { stage in
            let own = try await answer(stage, "work")
            let scope = try await answer(stage, "work", "--scope", "email")
            #expect(scope["scope"] == "email" && scope["access_token"] != own["access_token"])
            let both = try await answer(stage, "work", "--scope", "openid email")
            let audience = try await answer(stage, "work", "--audience", "https://api.example")
            let resource = try await answer(stage, "work", "--resource", "https://api.example/v1?x=y")
            let all = try await answer(
                stage, "work", "--scope", "email", "--audience", "a", "--resource", "urn:example:b")
            let tokens = [own, scope, both, audience, resource, all].compactMap { $0["access_token"]?.string }
            #expect(Set(tokens).count == 6)
            let asked = try await refreshes(stage)
            // A refresh token that comes with fewer scopes is presented for the whole scope at once.
            let whole = "email offline_access openid profile"
            #expect(
                asked.map { $0["scope"]?.string }
                    == ["email", whole, "email openid", whole, nil, nil, "email", whole])
            #expect(asked.compactMap { $0["audience"]?.string } == ["https://api.example", "a"])
            #expect(asked.compactMap { $0["resource"]?.string } == ["https://api.example/v1?x=y", "urn:example:b"])
            let renewed = try await answer(stage, "work")
            // All of them are kept; the order of scopes makes no difference, a restart neither.
            try await stage.stopDaemon()
            try await stage.startDaemon()
            #expect(try await answer(stage, "work")["access_token"] == renewed["access_token"])
            #expect(try await answer(stage, "work", "--scope", "email openid")["access_token"] == both["access_token"])
            #expect(try await answer(stage, "work", "--scope", "email")["access_token"] == scope["access_token"])
            let again = try await answer(
                stage, "work", "--resource", "urn:example:b", "--audience", "a", "--scope", "email")
            #expect(again["access_token"] == all["access_token"])
            #expect(try await refreshes(stage).count == 8)
        }
    }

    @Test func `scopes, resources and audiences that no provider can read are usage errors`() async throws {
        try await Stage.playSignedIn(Self.account) { stage in
            for arguments in [
                ["--scope", ""], ["--scope", "a\"b"], ["--resource", "/v1"],
                ["--resource", "https://api.example/#part"], ["--audience", ""],
                ["--kind", "id_token", "--scope", "email"],
            ] {
                try await stage.run("ringback", ["token", "work"] + arguments, status: 64, out: "")
            }
            #expect(try await refreshes(stage).isEmpty)
        }
    }

    @Test func `ringback session shows the downscoped token that ringback token prints`() async throws {
        try await Stage.playSignedIn(Self.account) { stage in
            for options in [["--scope", "email"], ["--audience", "a"], ["--resource", "urn:example:b"]] {
                let token = try await stage.run("ringback", ["token", "work"] + options)
                let shown = try await stage.run("ringback", ["session", "work", "--json", "--show-token"] + options)
                let session = try JSON(parsing: Array(shown.out.utf8))
                #expect(token.status == 0 && token.out == "\(session["access_token"]?.string ?? "")\n", "\(shown)")
            }
            let text = try await stage.ringback("session", "work", "--scope", "email", status: 0, prints: "email")
            #expect(!text.out.contains("openid"), "\(text)")
            try await stage.ringback("session", "work", "--subject", "somebody", status: 1, says: "another user")
        }
    }

    @Test func `a refused one is no refresh failure in the audit log`() async throws {
        try await Stage.playSignedIn { stage in
            let exposed = try await stage.ringback("expose", "ci", "--account", "work", "--json")
            let socket = try #require(try exposed.json["socket"]?.string, "\(exposed)")
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_scope"]]
            ])
            for _ in 0..<5 {
                try await stage.ringback("token", "work", "--scope", "email", status: 1, out: "")
                let other = try await stage.ringback("token", "work", "--scope", "openid", "--socket", socket, out: "")
                #expect(other.status != 0, "\(other)")
            }
            let audit = try await stage.ringback("audit", "--json", "--limit", "1000")
            let entries = try audit.lines.map { try JSON(parsing: $0.utf8) }
            #expect(!entries.contains { $0["event"] == "refresh_failed" }, "\(audit)")
            // The owner's once, and the exposed socket's once: five refusals of one kind are one entry.
            let refused = entries.filter { $0["event"] == "downscoping_failed" }
            let codes = refused.map { $0["provider_code"] ?? $0["code"] ?? "" }
            #expect(codes == ["invalid_scope", "method_unsupported"], "\(refused)")
            // Nothing is wrong with the session.
            let account = try await stage.account()
            #expect(account["state"] == "authenticated" && account["error"] == nil, "\(account.text)")
        }
    }
}
