import Configuration
import OAuth
import RingbackBase
import Testing

@Suite struct `An account` {
    private static let oidc = "issuer = \"https://id.example.org\"\nclient_id = \"c\"\n"

    @Test func `of an OpenID provider asks for an ID token unless told otherwise`() throws {
        #expect(try account(Self.oidc)?.scopes == ["openid"])
        #expect(try account(Self.oidc + "scopes = []")?.scopes == [])
        #expect(try account("provider = \"github\"\nclient_id = \"c\"")?.scopes == [])
    }

    @Test func `NAT-31: takes plain http for loopback issuers only`() throws {
        for issuer in ["http://127.0.0.1:8080", "http://localhost:8080/realm", "http://[::1]:8080"] {
            #expect(try account("issuer = \"\(issuer)\"\nclient_id = \"c\"")?.provider == .oidc(issuer: issuer))
        }
        #expect(try !mistakes("issuer = \"http://10.0.0.1\"\nclient_id = \"c\"").isEmpty)
    }

    @Test func `keeps the issuer byte for byte`() throws {
        let issuer = "https://ID.example.org:443/Realm%2F/"
        #expect(try account("issuer = \"\(issuer)\"\nclient_id = \"c\"")?.provider.issuer == issuer)
    }

    @Test func `of a preset has what the preset knows`() throws {
        let tenant = "11111111-2222-3333-4444-555555555555"
        let microsoft = try account("provider = \"microsoft\"\ntenant = \"\(tenant)\"\nclient_id = \"c\"")
        #expect(microsoft?.provider.issuer == "https://login.microsoftonline.com/\(tenant)/v2.0")
        let shared = try account("provider = \"microsoft\"\ntenant = \"common\"\nclient_id = \"c\"")
        #expect(shared?.provider.issuer == "https://login.microsoftonline.com/common/v2.0")
        #expect(microsoft?.redirectURIsToRegister == ["http://localhost:{port}"])
        #expect(microsoft?.redirect == .loopback(host: "localhost", port: nil, path: ""))
        let gitlab = try account("provider = \"gitlab\"\nhost = \"git.example.org\"\nclient_id = \"c\"")
        #expect(gitlab?.provider.issuer == "https://git.example.org")
        #expect(gitlab?.clientAuthentication == ClientAuthentication.none)
        let github = try account("provider = \"github\"\nclient_id = \"c\"")
        #expect(github?.provider.endpoints?.tokenEndpoint == "https://github.com/login/oauth/access_token")
        #expect(github?.provider.issuer == nil)
    }

    @Test func `overrules the preset's parameters by name`() throws {
        let lines =
            "provider = \"google\"\nclient_id = \"c\"\n"
            + "authorization_params = { access_type = \"online\", prompt = \"\" }"
        let expected = [FormEncoding.Pair("access_type", "online"), FormEncoding.Pair("prompt", "")]
        #expect(try account(lines)?.authorizationParameters == expected)
    }

    @Test func `with a secret leaves the authentication to the metadata`() throws {
        let command = "client_secret_command = [\"pass\", \"show\", \"x\"]\n"
        let stated = try account(Self.oidc + command)
        #expect(stated?.clientAuthentication == nil)
        #expect(stated?.clientSecretCommand == ["pass", "show", "x"])
        let post = try account(Self.oidc + command + "client_authentication = \"client_secret_post\"")
        #expect(post?.clientAuthentication == .clientSecretPost)
        #expect(try account(Self.oidc)?.clientAuthentication == ClientAuthentication.none)
        #expect(try account(Self.oidc)?.clientSecret == ClientSecretSource.none)
    }

    @Test func `may prove itself with a key in a file that is closed to others`() throws {
        let folder = try Folder()
        // RFC 8037 appendix A.1.
        let key = """
            {"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",\
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
            """
        let file = try folder.write(key, to: "key.jwk")
        try folder.write("[accounts.a]\n\(Self.oidc)client_key_file = \"~/key.jwk\"\n")
        let read = try folder.load().accounts.first
        #expect(read?.clientKeyFile == file)
        #expect(read?.clientAuthentication == .privateKeyJWT)
        #expect(try read?.readClientKey(user: Folder.user) == ClientKey(parsing: Secret(key)))
        try folder.write("[accounts.a]\n\(Self.oidc)client_key_file = \"~/key.jwk\"\nclient_key_id = \"k1\"\n")
        let named = try folder.load().accounts.first
        #expect(named?.clientKeyID == "k1")
        #expect(try named?.readClientKey(user: Folder.user) == ClientKey(parsing: Secret(key), keyID: "k1"))
        try folder.write(key, to: "key.jwk", mode: 0o644)
        #expect(throws: ConfigurationError.self) { try read?.readClientKey(user: Folder.user) }
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
        try folder.write("hush", to: "key.jwk")
        let error = #expect(throws: ConfigurationErrors.self) { try folder.load() }
        #expect(error?.errors.count == 1)
        #expect(error?.errors.first?.message.contains("hush") == false)
    }

    @Test func `reads how the browser delivers the authorization response, or leaves it to the provider`() throws {
        #expect(try account(Self.oidc)?.responseMode == nil)
        #expect(try account(Self.oidc + "response_mode = \"form_post\"")?.responseMode == .formPost)
    }

    @Test func `may hold its secret in a file that is closed to others`() throws {
        let inline = try account(Self.oidc + "client_secret = \"hush\"")
        #expect(inline?.clientSecret == .inline(Secret("hush")))
        #expect("\(String(describing: inline))".contains("hush") == false)
        var dumped = ""
        dump(inline, to: &dumped)
        #expect(!dumped.contains("hush"))
        #expect(throws: ConfigurationErrors.self) { try account(Self.oidc + "client_secret = \"hush\"", mode: 0o640) }
        let error = #expect(throws: ConfigurationErrors.self) {
            try account(Self.oidc + #"client_secret = "hush\r\n""#)
        }
        #expect(error?.errors.first?.message.contains("byte 4 is 0x0D") == true)
    }

    @Test func `expands the home directory in paths and programs`() throws {
        let folder = try Folder()
        try folder.write("x\n", to: "secret")
        try folder.write("[accounts.mail]\n\(Self.oidc)client_secret_command = [\"~/bin/secret\", \"~/x\"]\n")
        let configuration = try folder.load()
        #expect(configuration["mail"]?.clientSecretCommand == ["\(folder.path)/bin/secret", "~/x"])
    }

    @Test func `reads numbers, users and headers`() throws {
        let lines =
            Self.oidc + """
                flow_timeout = 10
                refresh_margin = 0
                session_warnings = [60, 600]
                callback_peer_uids = [0, 1001]
                headers = { X-Tenant = "a b", "x_y" = "" }
                policy = "same-uid"
                """
        let account = try #require(try account(lines))
        #expect(account.flowTimeout == .seconds(10))
        #expect(account.refreshMargin == 0)
        #expect(account.sessionWarnings == [600, 60])
        #expect(account.callbackPeerUIDs == [0, 1_001])
        #expect(account.headers == [FormEncoding.Pair("X-Tenant", "a b"), FormEncoding.Pair("x_y", "")])
    }

    @Test func `reads the browser that opens the sign-in page`() throws {
        let browser = #"browser = ["firefox", "-P", "work", "{url}"]"#
        #expect(try account(Self.oidc + browser)?.page.browser == ["firefox", "-P", "work", "{url}"])
        #expect(try account(Self.oidc)?.page == PageSettings())
        let folder = try Folder()
        try folder.write("[accounts.mail]\n\(Self.oidc)browser = [\"~/bin/browser\"]\n")
        #expect(try folder.load()["mail"]?.page.browser == ["\(folder.path)/bin/browser"])
    }

    @Test func `is called by its display name beside the provider's host`() throws {
        let name = "display_name = \"Swisscoin\"\n"
        #expect(try account(name + Self.oidc)?.label == "Swisscoin (id.example.org)")
        let project = "provider = \"supabase\"\nurl = \"https://a.supabase.co\"\napi_key = \"k\"\n"
        #expect(try account(name + project)?.label == "Swisscoin (a.supabase.co)")
        #expect(try account(name + "provider = \"github\"\nclient_id = \"c\"")?.label == "Swisscoin (github.com)")
        #expect(try account(name + "mcp = \"https://mcp.example.org/mcp\"")?.label == "Swisscoin (mcp.example.org)")
        #expect(try account(Self.oidc)?.label == "mail")
    }

    @Test(arguments: [
        "", " x", "x ", "a\\nb", "a\\u001bb", "a\\u202eb", "a\\u200bb", "a\\u2066b", "a\\u3164b", "a\\u2800b",
        "a\\u00a0b", "a  b",
        String(repeating: "x", count: 65),
    ])
    func `has a display name of one visible line`(text: String) throws {
        let found = try mistakes(Self.oidc + "display_name = \"\(text)\"")
        #expect(found.count == 1 && found[0].hasPrefix("display_name: is one line of"), "\(found)")
    }

    @Test func `reads its certificates when the configuration is read`() throws {
        let folder = try Folder()
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        try folder.write(pem, to: "ca.pem", mode: 0o644)
        let pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        try folder.write("[accounts.mail]\n\(Self.oidc)ca_file = \"~/ca.pem\"\npinned_public_keys = [\"\(pin)\"]\n")
        let trust = try folder.load()["mail"]?.trust
        #expect(trust == ServerTrust(certificateAuthorities: Array(pem.utf8), pinnedPublicKeys: [pin]))
        try folder.write("-----BEGIN PRIVATE KEY-----\n", to: "ca.pem")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
    }

    @Test func `of Supabase needs no client, and lists what to allow`() throws {
        let lines = "provider = \"supabase\"\nurl = \"https://abc.supabase.co\"\napi_key = \"k\"\n"
        let loopback = try #require(try account(lines))
        #expect(loopback.redirectURIsToRegister.isEmpty)
        #expect(loopback.clientID.isEmpty)
        let none = try account(lines + "redirect_uri = \"app://cb\"\nredirect_flow_key = \"none\"")
        #expect(none?.redirectURIsToRegister == ["app://cb"])
    }

    @Test func `may push its requests to an endpoint by hand`() throws {
        let endpoints = "authorization = \"https://h.example/a\"\ntoken = \"https://h.example/t\""
        let pushed = "pushed_authorization_request = \"https://h.example/p\""
        let read = try account("client_id = \"c\"\n[accounts.mail.endpoints]\n\(endpoints)\n\(pushed)")
        #expect(read?.provider.endpoints?.pushedAuthorizationRequestEndpoint == "https://h.example/p")
    }

    @Test func `of Apple works with an https redirect`() throws {
        let lines =
            "issuer = \"https://appleid.apple.com\"\nclient_id = \"c\"\nredirect_uri = \"https://example.org/cb\""
        #expect(try account(lines)?.redirect == .https(uri: "https://example.org/cb"))
    }

    @Test func `an account may have any name that the socket API allows`() throws {
        let folder = try Folder()
        let names = ["a", "0", "a-b_c.d", String(repeating: "a", count: 64)]
        try folder.write(names.map { "[accounts.\"\($0)\"]\n\(Self.oidc)" }.joined())
        #expect(try folder.load().accounts.map(\.name) == names.sorted())
    }
}
