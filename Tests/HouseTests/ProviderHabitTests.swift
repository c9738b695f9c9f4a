import RingbackBase
import Testing

/// Providers as they are: what their metadata leave out, and what they do otherwise than the standards say.
@Suite struct `A provider with habits of its own` {
    @Test func `offline_access of the configuration is requested though the provider does not list it`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control([
                "refresh_tokens": "offline_consent", "perturb": ["metadata_no_offline_access"],
            ])
            let flow = try await stage.signIn()
            #expect(
                flow.authorizationURL.contains("offline_access") && flow.authorizationURL.contains("prompt=consent"))
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            // Nobody has named it: the usual scopes are those that the provider lists.
            try await stage.ringback(
                "account", "add", "play", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo", status: 0,
                says: "--scopes")
            let file = try #require(FileTree.text(of: "\(stage.dropIns)/play.toml"))
            #expect(file.contains("scopes = [\"openid\", \"email\"]"), "\(file)")
        }
    }

    @Test func `logout says what the provider has not revoked, and until when it is valid`() async throws {
        try await Stage.playSignedIn { stage in
            try await stage.sandbox.control([
                "faults": [
                    [
                        "endpoint": "revocation", "kind": "error", "error": "invalid_client", "status": 400,
                        "count": 2,
                    ]
                ]
            ])
            try await stage.ringback(
                "logout", "work", status: 0, out: "Signed out of work\n", says: "refused to revoke",
                "the access token until 20", "the refresh token until the provider ends it")
            #expect(try await stage.account()["revocation"] == "refused")
            #expect(try await stage.ringback("accounts").out.contains("refused to revoke"))
            #expect(try await stage.ringback("doctor", "work").out.contains("refused to revoke"))

            try await stage.sandbox.control(["clear": true])
            try await stage.sandbox.control(["perturb": ["metadata_no_revocation"]])
            try await stage.ringback("reload", status: 0)
            try await stage.signIn()
            let silent = try await stage.ringback("logout", "work", "--json")
            let answer = try JSON(parsing: Array(silent.out.utf8))
            #expect(answer["revocation"] == "not_offered", "\(silent)")
            #expect(answer["still_valid"]?["refresh_token"] == true, "\(silent)")
            #expect((answer["still_valid"]?["access_token_expires_at"]?.integer ?? 0) > 0, "\(silent)")
        }
    }

    @Test func `consent is not asked for if the configuration says so`() async throws {
        let configuration = Stage.twoAccounts.replacing(
            "[accounts.home]", with: "offline_access_consent = false\n[accounts.home]")
        try await Stage.play(configuration) { stage in
            let flow = try await stage.begin()
            #expect(!flow.authorizationURL.contains("prompt="))
        }
    }

    @Test func `a client secret goes by Basic, and after a refusal in the form from then on`() async throws {
        let configuration = """
            [accounts.work]
            issuer = "{sandbox}"
            client_id = "posting"
            client_secret = "hush-hush-hush"
            scopes = ["openid", "offline_access"]

            """
        try await Stage.play(configuration) { stage in
            try await stage.sandbox.control([
                "perturb": ["metadata_no_authentication_methods"],
                "clients": [["id": "posting", "secret": "hush-hush-hush", "authentication": "client_secret_post"]],
            ])
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            let requests = try await stage.sandbox.log().filter { $0["endpoint"]?.string == "token" }
            #expect(requests.map { $0["status"]?.integer } == [401, 200, 200], "\(requests)")
        }
    }

    @Test func `a token endpoint that is not there names the setting`() async throws {
        let configuration = """
            [accounts.work]
            client_id = "ringback-demo"
            endpoints = { authorization = "{sandbox}/authorize", token = "{sandbox}/nowhere" }

            """
        try await Stage.play(configuration) { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await Browser.deliver(Browser.signIn(at: login.line()))
            try await login.end().expect(5, says: "(HTTP 404). Look at endpoints.token of the account.")
        }
    }

    @Test func `a 403 without a word after a push says which settings to look at`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control([
                "pushed_requests": "offered", "faults": [["endpoint": "par", "kind": "empty", "status": 403]],
            ])
            let login = try await stage.ringback("login", "work", "--no-browser")
            #expect(
                login.status != 0 && login.err.contains("client_id") && login.err.contains("redirect_uri"), "\(login)")
        }
    }

    /// A plain OAuth 2.0 server gives no ID token: who signed in is known by the userinfo endpoint alone.
    @Test(arguments: [true, false])
    func `a userinfo endpoint by hand tells who signed in`(hasUserinfo: Bool) async throws {
        let configuration = """
            [accounts.work]
            client_id = "ringback-demo"
            scopes = ["email", "profile"]
            [accounts.work.endpoints]
            authorization = "{sandbox}/authorize"
            token = "{sandbox}/token"
            \(hasUserinfo ? "userinfo = \"{sandbox}/userinfo\"" : "")

            """
        try await Stage.play(configuration) { stage in
            try await stage.sandbox.control(["perturb": ["userinfo_without_openid"]])
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await Browser.deliver(Browser.signIn(at: login.line()))
            let ended = try await login.end().expect(0)
            let account = try await stage.account()
            #expect(account["state"] == "authenticated", "\(account.text)")
            #expect((account["subject"] != nil) == hasUserinfo, "\(account.text)")
            #expect(account["user"]?["email"]?.string == (hasUserinfo ? "alice@example.org" : nil), "\(account.text)")
            #expect(account["user"]?["preferred_username"]?.string == (hasUserinfo ? "alice" : nil), "\(account.text)")
            #expect(ended.lines.last?.contains("alice@example.org") == hasUserinfo, "\(ended)")
            #expect(try await stage.sandbox.counters().requests("userinfo") == (hasUserinfo ? 1 : 0))
        }
    }

    @Test(arguments: ["work", "robot"])
    func `metadata are read again after a refresh that somebody asked for and that failed at an old endpoint`(
        account: String
    ) async throws {
        let service = """

            [accounts.robot]
            issuer = "{sandbox}"
            client_id = "robot"
            client_secret_file = "{stage}/secret"
            grant = "client_credentials"
            scopes = ["deploy"]

            """
        try await Stage.play(Stage.twoAccounts + service, startsDaemon: false) { stage in
            try stage.write("robot-hush\n", to: "\(stage.directory)/secret")
            try await stage.sandbox.control([
                "clients": [["id": "ringback-demo"], ["id": "robot", "secret": "robot-hush"]]
            ])
            try await stage.startDaemon()
            try await stage.signIn()
            try await stage.ringback("token", account, status: 0)
            // The token endpoint is at another path for a while.
            try await stage.sandbox.control([
                "endpoints": ["token": .string("\(stage.sandbox.origin)/elsewhere")]
            ])
            try await stage.ringback("reload", status: 0)
            let before = try await stage.sandbox.counters().requests("discovery")
            try await stage.ringback("refresh", account, "--force", status: 5)
            #expect(try await stage.sandbox.counters().requests("discovery") == before + 1)
            try await stage.sandbox.control(["endpoints": [:]])
            try await stage.ringback("refresh", account, "--force", status: 0)
            #expect(try await stage.sandbox.counters().requests("discovery") == before + 2)
        }
    }

    @Test func `a failure that says why is shown in the provider's words`() async throws {
        try await Stage.playSignedIn { stage in
            try await stage.sandbox.control([
                "faults": [
                    [
                        "endpoint": "token", "kind": "error", "error": "server_error", "status": 500,
                        "message": "Database error",
                    ]
                ]
            ])
            let answer = try await stage.api(
                "POST", "/v1/accounts/work/refresh", ["force": true], status: 503, code: "provider_unreachable")
            #expect(answer["provider_code"]?.string == "server_error", "\(answer)")
            #expect(answer["provider_message"]?.string == "Database error", "\(answer)")
            try await stage.sandbox.control([
                "faults": [
                    [
                        "endpoint": "token", "kind": "error", "error": "server_error", "status": 500,
                        "message": "Database error",
                    ]
                ]
            ])
            try await stage.ringback("refresh", "work", "--force", status: 5, says: "Database error", "server_error")
            // The session is kept: such words prove nothing about it.
            #expect(try await stage.token() != nil)
        }
    }

    @Test func `the internet is not blamed for a local provider, and a pasted address is recognized`() async throws {
        let configuration = "[accounts.work]\nissuer = \"http://127.0.0.1:1\"\nclient_id = \"c\"\n"
        try await Stage.play(configuration) { stage in
            let login = try await stage.ringback("login", "work", "--no-browser", status: 5)
            #expect(!login.err.contains("internet"), "\(login)")
            try stage.write(
                configuration: configuration.replacing(
                    "127.0.0.1:1", with: "127.0.0.1:1/.well-known/openid-configuration"))
            let check = try await stage.ringback("config", "check", status: 78)
            #expect((check.out + check.err).contains("/.well-known/"), "\(check)")
        }
    }
}
