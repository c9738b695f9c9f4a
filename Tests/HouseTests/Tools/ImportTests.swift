// `ringback import`: accounts of other programs.

import Glibc
import StrictJSON
import Testing

@Suite struct `ringback import` {
    private static let pizauth = """
        refresh_at_least = 90m;
        account "Work Mail" {
            auth_uri = "{sandbox}/authorize";
            token_uri = "{sandbox}/token";
            client_id = "ringback-demo";
            client_secret = "s3cret";
            scopes = ["email", "mail"];
        }

        """

    private func write(_ text: String, _ name: String, on stage: Stage) throws -> String {
        let path = "\(stage.directory)/\(name)"
        try stage.write(text.replacing("{sandbox}", with: stage.sandbox.origin), to: path)
        return path
    }

    @Test func `shows an account of pizauth without its secret, and adds it`() async throws {
        try await Stage.play("") { stage in
            let file = try write(Self.pizauth, "pizauth.conf", on: stage)
            let shown = try await stage.ringback("import", "pizauth", "--file", file, "--print")
            #expect(shown.status == 0 && !shown.out.contains("s3cret") && shown.out.contains("(not shown)"), "\(shown)")
            #expect(shown.out.contains(#"redirect_uri = "http://localhost:{port}/""#), "\(shown)")
            let refused = try await stage.ringback("import", "pizauth", "--file", file)
            #expect(refused.status == 4 && refused.err.contains("--yes"), "\(refused)")
            #expect(!FileTree.names(in: stage.dropIns).contains("work-mail.toml"))

            let added = try await stage.ringback("import", "pizauth", "Work Mail", "--file", file, "--yes")
            #expect(added.status == 0 && added.out.contains("Added the account work-mail"), "\(added)")
            let text = try #require(FileTree.text(of: "\(stage.dropIns)/work-mail.toml"))
            #expect(text.contains(#"client_secret = "s3cret""#) && text.contains(#"scopes = ["email", "mail"]"#))
            #expect(try await stage.account("work-mail")["state"] == "unauthenticated")
            let unknown = try await stage.ringback("import", "pizauth", "home", "--file", file, "--yes")
            #expect(unknown.status == 64 && unknown.err.contains("Work Mail"), "\(unknown)")
        }
    }

    @Test func `refuses a file that is not the program's, and one that is not there`() async throws {
        try await Stage.play("") { stage in
            let file = try write("a: [b]\n", "hosts.yml", on: stage)
            for program in ["gh", "glab", "pizauth", "oidc-agent"] {
                let refused = try await stage.ringback("import", program, "--file", file, "--yes")
                #expect(refused.status == 1 && refused.err.contains("Nothing was changed"), "\(refused)")
                let missing = try await stage.ringback("import", program, "--file", file + "x", "--yes")
                #expect(missing.status == 1 && missing.err.contains("No such file"), "\(missing)")
            }
        }
    }

    @Test func `reads gh's own file, and needs a client of the user's`() async throws {
        try await Stage.play("") { stage in
            for folder in [".config", ".config/gh"] { unsafe mkdir("\(stage.directory)/home/\(folder)", 0o700) }
            _ = try write(
                "github.com:\n    user: ada\n    oauth_token: gho_abc\n", "home/.config/gh/hosts.yml", on: stage)
            if areInstalled("gh") {
                // gh understands the same file.
                let status = try await stage.run("/usr/bin/gh", ["auth", "token"])
                #expect(status.out == "gho_abc\n", "\(status)")
            }
            let refused = try await stage.ringback("import", "gh", "--yes")
            #expect(refused.status == 64 && refused.err.contains("--client-id"), "\(refused)")
            let shown = try await stage.ringback("import", "gh", "--client-id", "abc", "--account", "hub", "--print")
            #expect(shown.status == 0 && shown.out.contains("provider = \"github\"\nclient_id = \"abc\""), "\(shown)")
            #expect(!(shown.out + shown.err).contains("gho_abc") && shown.err.contains("cannot be refreshed"))
        }
    }

    @Test func `says that glab's token is in a keyring, and that “bypass” is no client`() async throws {
        try await Stage.play("") { stage in
            let text = "hosts:\n    git.example.org:\n        is_oauth2: \"true\"\n"
            let kept = try write(text + "        client_id: c1\n        use_keyring: \"true\"\n", "kept.yml", on: stage)
            let shown = try await stage.ringback("import", "glab", "--file", kept, "--print")
            #expect(shown.status == 0 && shown.out.contains("client_id = \"c1\""), "\(shown)")
            #expect(shown.err.contains("glab keeps it in a keyring (use_keyring)"), "\(shown)")
            let bypass = try write(text + "        client_id: bypass\n", "bypass.yml", on: stage)
            let refused = try await stage.ringback("import", "glab", "--file", bypass, "--yes")
            #expect(refused.status == 64 && refused.err.contains("“bypass”, which is no client"), "\(refused)")
            #expect(refused.err.contains("--client-id") && !refused.out.contains("bypass"), "\(refused)")
        }
    }

    @Test func `reads the clients of git-credential-oauth from git's configuration`() async throws {
        try await Stage.play("") { stage in
            for (name, value) in [("oauthClientId", "ringback-demo"), ("oauthAuthURL", "/authorize")] {
                let set = try await stage.run(
                    "/usr/bin/git", ["config", "--global", "credential.\(stage.sandbox.origin).\(name)", value])
                #expect(set.status == 0, "\(set)")
            }
            // The sandbox is on loopback, where git-credential-oauth would send a token too.
            let shown = try await stage.ringback("import", "git-credential-oauth", "--account", "git", "--print")
            #expect(shown.status == 0 && shown.out.contains(#"client_id = "ringback-demo""#), "\(shown)")
            #expect(shown.err.contains("ringback origin add \(stage.sandbox.origin) --account git"), "\(shown)")
        }
    }

    @Test func `takes a session over with the account, and replaces none`() async throws {
        try await Stage.play("") { stage in
            try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": "s3cret"]]])
            let token = try await ForeignAgent.refreshToken(on: stage)
            try await stage.sandbox.control(["clients": [["id": "ringback-demo"]]])
            let account: JSON = [
                "name": "mine", "issuer_url": .string(stage.sandbox.origin + "/"), "client_id": "ringback-demo",
                "refresh_token": .string(token), "scope": "openid email offline_access",
            ]
            let file = try write(account.text, "mine.json", on: stage)
            let taken = try await stage.ringback("import", "oidc-agent", "--file", file, "--session", "--yes")
            #expect(taken.status == 0 && taken.out.contains("Took over the session of mine"), "\(taken)")
            #expect(!(taken.out + taken.err).contains(token), "\(taken)")
            #expect(!taken.err.contains("Then run: ringback login"), "\(taken)")
            let text = try #require(FileTree.text(of: "\(stage.dropIns)/mine.toml"))
            // Without the slash that oidc-agent adds.
            #expect(text.contains("issuer = \"\(stage.sandbox.origin)\"\n") && !text.contains(token), "\(text)")
            let held = try await stage.account("mine")
            #expect(held["state"] == "authenticated" && held["user"]?["email"] == "alice@example.org", "\(held)")
            #expect(try await stage.token("mine") != nil)
            let refreshed = try await stage.ringback("refresh", "mine", "--force")
            #expect(refreshed.status == 0, "\(refreshed)")

            // A session that is held is not replaced, and a token that is not accepted makes none.
            let second: JSON = ["method": "session", "refresh_token": "unknown"]
            #expect(try await stage.api("POST", "/v1/accounts/mine/sign-in", second).status == 409)
            try await stage.ringback("logout", "mine")
            let refused = try await stage.api("POST", "/v1/accounts/mine/sign-in", second)
            #expect(refused.status == 400 && refused["field"] == "refresh_token", "\(refused)")
            let empty = try await stage.api("POST", "/v1/accounts/mine/sign-in", ["method": "session"])
            #expect(empty.status == 400, "\(empty)")
            #expect(try await stage.account("mine")["state"] == "unauthenticated")
        }
    }

    /// Takes over a session of another program whose refresh token the sandbox replaces.
    private func takeOver(on stage: Stage, while switches: JSON) async throws -> Output {
        try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": "s3cret"]]])
        let token = try await ForeignAgent.refreshToken(on: stage)
        try await stage.sandbox.control(["clients": [["id": "ringback-demo"]]])
        try await stage.sandbox.control(switches)
        let account: JSON = [
            "name": "mine", "issuer_url": .string(stage.sandbox.origin), "client_id": "ringback-demo",
            "refresh_token": .string(token), "scope": "openid email offline_access",
        ]
        let file = try write(account.text, "mine.json", on: stage)
        return try await stage.ringback("import", "oidc-agent", "--file", file, "--session", "--yes")
    }

    /// The refresh tokens that the sandbox was shown for new ones, in order.
    private func presented(on stage: Stage) async throws -> [String] {
        try await stage.sandbox.log().compactMap { entry in
            guard entry["parameters"]?["grant_type"] == "refresh_token" else { return nil }
            return entry["parameters"]?["refresh_token"]?.string
        }
    }

    @Test func `keeps a session whose ID token cannot be checked yet, and gives no token of it`() async throws {
        try await Stage.play("") { stage in
            let away: JSON = ["faults": [["endpoint": "jwks", "kind": "status", "status": 503]]]
            let taken = try await takeOver(on: stage, while: away)
            #expect(taken.status == 0 && taken.out.contains("Took over the session of mine"), "\(taken)")
            let held = try await stage.account("mine")
            let state = held["state"]?.string ?? ""
            #expect(["authenticated", "refreshing"].contains(state) && held["user"]?["email"] == nil, "\(held)")
            let none = try await stage.api("GET", "/v1/accounts/mine/session")
            #expect(none.status >= 500 && none["code"] == "provider_unreachable", "\(none)")

            try await stage.sandbox.control(["clear": true])
            let refreshed = try await stage.ringback("refresh", "mine", "--force")
            #expect(refreshed.status == 0, "\(refreshed)")
            #expect(try await stage.account("mine")["user"]?["email"] == "alice@example.org")
            #expect(try await stage.token("mine") != nil)
            // No refresh token was lost, and none was shown again after it was replaced.
            let presented = try await presented(on: stage)
            #expect(presented.count >= 3 && Set(presented).count == presented.count, "\(presented)")
            #expect(try await stage.sandbox.counters()["reuse_detections"] == 0)
        }
    }

    @Test(arguments: ["id_token_wrong_issuer", "userinfo_wrong_subject"])
    func `ends the replaced refresh token of a session that cannot be the account's, and says so`(
        perturbation: String
    ) async throws {
        try await Stage.play("") { stage in
            let taken = try await takeOver(on: stage, while: ["perturb": [.string(perturbation)]])
            #expect(taken.status != 0 && !taken.out.contains("Took over"), "\(taken)")
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

    @Test func `needs no userinfo, and ends nothing where the refresh token stays`() async throws {
        try await Stage.play("") { stage in
            let away: JSON = ["faults": [["endpoint": "userinfo", "kind": "status", "status": 503]]]
            let taken = try await takeOver(on: stage, while: away)
            #expect(taken.status == 0, "\(taken)")
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
    func `has oidc-gen ask for the passphrase, and takes the account and its session over`() async throws {
        try await Stage.play("") { stage in
            let agent = try await ForeignAgent(on: stage)
            defer { agent.stop() }
            let terminal = try TerminalProgram(
                ["import", "oidc-agent"], environment: stage.environment.merging(agent.environment) { $1 })
            try await terminal.shows("password for account config 'mine'")
            terminal.type(ForeignAgent.passphrase)
            for (question, answer) in [("Add this account? [Y/n] ", ""), ("Take over its session?", "y")] {
                try await terminal.shows(question)
                terminal.type(answer)
            }
            let ended = try await terminal.end()
            #expect(ended.status == 0 && ended.text.contains("Took over the session of mine"), "\(ended)")
            #expect(!ended.text.contains("Then run: ringback login"), "\(ended)")
            #expect(!ended.text.contains(ForeignAgent.passphrase) && !ended.text.contains(ForeignAgent.secret))
            #expect(try await stage.account("mine")["user"]?["email"] == "alice@example.org")
            // oidc-agent's account is as it was.
            let names = try await stage.run("/usr/bin/oidc-gen", ["--accounts"], environment: agent.environment)
            #expect(names.out.contains("mine"), "\(names)")
        }
    }
}
