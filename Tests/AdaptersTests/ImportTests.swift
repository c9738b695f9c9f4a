import Testing

@testable import Adapters

@Suite struct `Accounts of other programs` {
    // MARK: oidc-agent

    /// As oidc-gen 4.2.6 prints an account.
    private static let printed = """
        {
        \t"name":\t"work",
        \t"client_name":\t"oidc-agent:work-vm",
        \t"issuer_url":\t"https://id.example.org/",
        \t"device_authorization_endpoint":\t"",
        \t"daeSetByUser":\t0,
        \t"client_id":\t"cid",
        \t"client_secret":\t"csec",
        \t"refresh_token":\t"rt'1",
        \t"cert_path":\t"/etc/ssl/certs/ca-certificates.crt",
        \t"scope":\t"openid offline_access",
        \t"audience":\t"",
        \t"redirect_uris":\t["edu.kit.data.oidc-agent:/redirect", "http://localhost:8080"],
        \t"username":\t"",
        \t"password":\t""
        }
        """

    @Test func `oidc-agent's is read as it is printed`() throws {
        let account = try OIDCAgentAccount.read(Array(Self.printed.utf8))
        var expected = ForeignAccount(name: "work")
        expected.issuer = "https://id.example.org/"
        expected.clientID = "cid"
        expected.clientSecret = "csec"
        expected.refreshToken = "rt'1"
        expected.scopes = ["openid", "offline_access"]
        expected.redirectURI = "http://localhost:8080"
        #expect(account == expected)
        #expect(
            OIDCAgentAccount.issuers(of: "https://id.example.org/")
                == ["https://id.example.org", "https://id.example.org/"])
        #expect(
            OIDCAgentAccount.names(in: "The following account configurations are usable: \nwork\nhome \n-x\na/b\n")
                == ["work", "home"])
    }

    @Test(
        arguments: [
            "", "[]", "{}", #"{"name":"a"}"#, #"{"name":"a","issuer_url":7}"#,
            #"{"name":"a","name":"b","issuer_url":"https://x"}"#, #"{"name":"a\u0000","issuer_url":"https://x"}"#,
            #"{"name":"a","issuer_url":"https://x\ny"}"#, #"{"name":"a","issuer_url":"https://x","redirect_uris":"u"}"#,
            #"{"name":"a","issuer_url":"https://x","redirect_uris":[1]}"#,
            #"{"name":"a","issuer_url":"https://x","client_id":"a\tb"}"#,
        ])
    func `what is no account of oidc-agent is refused`(text: String) {
        #expect(throws: AdapterFailure.self) { try OIDCAgentAccount.read(Array(text.utf8)) }
    }

    // MARK: pizauth

    private static let conf = #"""
        auth_notify_cmd = "notify-send \"$PIZAUTH_ACCOUNT\" // \\ no comment";
        refresh_at_least = 90m; // a comment "
        account "officesmtp" {
            auth_uri = "https://login.example.org/authorize";
            token_uri = "https://login.example.org/token";
            client_id = "cid";
            client_secret = "c\"s";
            scopes = [
              "https://outlook.office365.com/SMTP.Send",
              "offline_access"
            ];
            auth_uri_fields = { "login_hint": "email@example.com" };
        }
        account "b" { auth_uri="https://b/a";token_uri="https://b/t";client_id="c";scopes=[];redirect_uri="http://127.0.0.1:99/x"; }
        """#

    @Test func `pizauth's are read as its manual page writes them`() throws {
        let accounts = try PizauthConfiguration(reading: Array(Self.conf.utf8)).accounts
        #expect(accounts.map(\.name) == ["officesmtp", "b"])
        let first = try #require(accounts.first)
        #expect(first.clientSecret == "c\"s" && first.redirectURI == "http://localhost:{port}/")
        #expect(first.scopes == ["https://outlook.office365.com/SMTP.Send", "offline_access"])
        #expect(first.authorizationEndpoint == "https://login.example.org/authorize" && first.notes.count == 1)
        #expect(accounts.last?.redirectURI == "http://127.0.0.1:99/x" && accounts.last?.clientSecret == nil)
    }

    @Test(
        arguments: [
            "account", #"account "a" {"#, #"account "a" {}"#, #"account a { }"#, #"x = "a""#, #"x = "a;"#, "\u{0}",
            #"account "a" { auth_uri = "https://b"; auth_uri = "https://c"; token_uri = "t"; client_id = "c"; }"#,
            "account \"a\nb\" { auth_uri = \"a\"; token_uri = \"t\"; client_id = \"c\"; }",
            #"account "a" { auth_uri = "a"; token_uri = "t"; client_id = "c"; scopes = ["a" "b"]; }"#,
            #"account "a" { auth_uri = "a"; token_uri = "t"; client_id = "c"; auth_uri_fields = {"a"}; }"#,
            #"account "a" { auth_uri = 5m; token_uri = "t"; client_id = "c"; }"#, "} {", "= ;", "é = 1;",
        ])
    func `what pizauth would not read is refused`(text: String) {
        #expect(throws: AdapterFailure.self) { try PizauthConfiguration(reading: Array(text.utf8)) }
    }

    @Test func `an account of pizauth that stands twice is refused`() {
        let one = #"account "a" { auth_uri = "a"; token_uri = "t"; client_id = "c"; }"#
        #expect(throws: Never.self) { try PizauthConfiguration(reading: Array(one.utf8)) }
        #expect(throws: AdapterFailure.self) { try PizauthConfiguration(reading: Array((one + one).utf8)) }
    }

    // MARK: git-credential-oauth

    @Test func `git-credential-oauth's are the sections with a client`() throws {
        let listing = [
            "credential.helper\noauth", "credential.https://git.example.org.oauthclientid\ncid",
            "credential.https://git.example.org.oauthscopes\nread_repository,write_repository",
            "credential.https://git.example.org.oauthauthurl\n/oauth/authorize",
            "credential.https://git.example.org.oauthtokenurl\n/oauth/token",
            "credential.https://git.example.org.oauthredirecturl\nhttp://127.0.0.1/",
            "credential.https://github.com.oauthclientid\nc2", "credential.https://github.com.oauthclientsecret\ns",
            "credential.https://plain.example.org.oauthscopes\nx",
            "credential.https://id.example.org.oauthclientid\nc3",
        ].joined(separator: "\u{0}")
        let accounts = try GitConfiguration(listing: Array(listing.utf8)).oauthAccounts()
        #expect(accounts.map(\.name) == ["git.example.org", "github.com", "id.example.org"])
        let first = try #require(accounts.first)
        #expect(first.authorizationEndpoint == "https://git.example.org/oauth/authorize")
        #expect(first.tokenEndpoint == "https://git.example.org/oauth/token" && first.clientID == "cid")
        #expect(first.scopes == ["read_repository", "write_repository"] && first.server == "https://git.example.org")
        #expect(first.redirectURI == "http://127.0.0.1:{port}/")
        #expect(accounts[1].preset == "github" && accounts[1].clientSecret == "s")
        #expect(accounts[2].issuer == "https://id.example.org" && accounts[2].notes.count == 1)
    }

    @Test(
        arguments: [
            "credential.http://git.example.org.oauthclientid\nc", "credential.x.oauthclientid\nc",
            "credential.https://a.example.org.oauthclientid\na\u{1}b",
        ])
    func `a section of git that cannot be an account's is refused`(entry: String) throws {
        let configuration = GitConfiguration(listing: Array(entry.utf8))
        #expect(throws: AdapterFailure.self) { try configuration.oauthAccounts() }
    }

    // MARK: gh and glab

    @Test func `gh's are the hosts of its file, without tokens`() throws {
        let old = "github.com:\n    user: ada\n    oauth_token: gho_abc123\n    git_protocol: ssh\n"
        let new = """
            github.com:
                users:
                    ada:
                        oauth_token: gho_abc123
                git_protocol: https
                user: ada
            ghe.example.org: # ours
              user: "a\\"b"
            """
        let first = try HostsFile(reading: Array(old.utf8)).accountsOfGH()
        #expect(first.map(\.preset) == ["github"] && first[0].scopes == ["repo", "read:org", "gist"])
        #expect(first[0].clientID == nil && first[0].refreshToken == nil && first[0].notes.count == 1)
        let both = try HostsFile(reading: Array(new.utf8)).accountsOfGH()
        #expect(both.map(\.name) == ["github.com", "ghe.example.org"])
        #expect(both[1].tokenEndpoint == "https://ghe.example.org/login/oauth/access_token")
    }

    @Test func `glab's have a session where the client is the user's own`() throws {
        let text = """
            # What protocol to use
            git_protocol: ssh
            editor:
            host: gitlab.com
            hosts:
                gitlab.com:
                    token: !!null glpat-abc
                    is_oauth2: "false"
                git.example.org:
                    token: at
                    client_id: 'c''1'
                    is_oauth2: "true"
                    oauth2_refresh_token: rt1
                    oauth2_expiry_date: 02 Jan 26 15:04 UTC
                    user: ada
            """
        let accounts = try HostsFile(reading: Array(text.utf8)).accountsOfGlab()
        #expect(accounts.map(\.name) == ["gitlab.com", "git.example.org"])
        #expect(accounts[0].preset == "gitlab" && accounts[0].refreshToken == nil && accounts[0].notes.count == 1)
        #expect(accounts[1].issuer == "https://git.example.org" && accounts[1].clientID == "c'1")
        #expect(accounts[1].refreshToken == "rt1" && accounts[1].notes.isEmpty)
    }

    @Test func `glab's session in a keyring, or of the client “bypass”, is not taken over, which is said`() throws {
        let host = "hosts:\n    git.example.org:\n        is_oauth2: \"true\"\n        oauth2_refresh_token: rt1\n"
        for (lines, client, words) in [
            ("        client_id: bypass\n", nil, "“bypass”, which is no client"),
            ("        client_id: c1\n        use_keyring: \"true\"\n", "c1", "keeps it in a keyring"),
            ("        client_id: c1\nuse_keyring: true\n", "c1", "keeps it in a keyring"),
        ] as [(String, String?, String)] {
            let accounts = try HostsFile(reading: Array((host + lines).utf8)).accountsOfGlab()
            #expect(accounts.map(\.clientID) == [client] && accounts.map(\.refreshToken) == [nil], "\(accounts)")
            #expect(accounts[0].notes.count == 1 && accounts[0].notes[0].contains(words), "\(accounts)")
        }
        let apart = "use_keyring: \"false\"\n" + host + "        client_id: c1\n"
        #expect(try HostsFile(reading: Array(apart.utf8)).accountsOfGlab()[0].refreshToken == "rt1")
    }

    @Test(
        arguments: [
            "a", "a:b", "  a: b", "a: b\n  c: d", "a:\n    b: c\n  d: e", "a: b\na: c", "a: [b]", "a: {b: c}",
            "a: &x b", "a: *x", "a: |", "a: >", "a: \"b", "a: \"\\n\"", "a: 'b' c", "a: b: c", "- a", "a:\n- b",
            "a:\tb", "\ta: b", "a: b\r", "? a", "%YAML", "a: @b", "a: !!binary x", "a: \u{7F}", "é: b", "...",
            "a: b\n\"a\": c", "a:\n a:\n  a:\n   a:\n    a:\n     a:\n      a:\n       a:\n        a: b",
        ])
    func `forms of YAML that are not read are refused`(text: String) {
        #expect(throws: AdapterFailure.self) { try HostsFile(reading: Array(text.utf8)) }
    }

    @Test func `texts of a file are read as YAML says`() throws {
        let text = "---\na: b # c\n\n# d\n'e f': \"g\\\\h\"\ni: null\nj: ''\nk: b#c\nl: {}\nm: !!str x\nn: a:b\n"
        let top = try HostsFile(reading: Array(text.utf8)).top
        let expected = ["a": "b", "e f": "g\\h", "i": "", "j": "", "k": "b#c", "l": "", "m": "x", "n": "a:b"]
        #expect(top.settings.count == expected.count)
        for (name, value) in expected { #expect(top[name]?.text == value, "\(name)") }
    }

    // MARK: Names

    @Test(
        arguments: [
            ("work", "work"), ("Work Mail", "work-mail"), ("git.example.org", "git.example.org"), ("", "imported"),
            ("-é", "imported"), ("../x", "x"),
        ])
    func `a name becomes one that an account can have`(name: String, expected: String) {
        #expect(ForeignAccount(name: name).accountName == expected)
    }
}
