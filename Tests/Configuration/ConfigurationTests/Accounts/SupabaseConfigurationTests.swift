import RingbackBase
import SupabaseAuth
import Testing

@testable import Configuration

@Suite struct `A project on Supabase` {
    private static let url = "url = \"https://abc.supabase.co\"\n"
    private static let lines = "provider = \"supabase\"\napi_key = \"sb_publishable_x\"\n"

    private func project(_ more: String, url: String = url) throws -> SupabaseConfiguration {
        guard case .supabase(let project) = try account(Self.lines + url + more)?.provider else { throw Missing() }
        return project
    }

    private struct Missing: Error {}

    private func mistake(_ more: String, url: String = url) throws -> String {
        let found = try mistakes(Self.lines + url + more)
        #expect(found.count == 1, "\(found)")
        return found.first ?? ""
    }

    @Test(arguments: [
        ("https://abc.supabase.co", "https://abc.supabase.co"), ("https://abc.supabase.co/", "https://abc.supabase.co"),
        ("https://abc.supabase.co/auth/v1", "https://abc.supabase.co"),
        ("https://abc.supabase.co/auth/v1/", "https://abc.supabase.co"),
        ("https://self.example.org/supabase", "https://self.example.org/supabase"),
        ("http://127.0.0.1:54321", "http://127.0.0.1:54321"), ("http://localhost:54321", "http://localhost:54321"),
    ])
    func `is at its url, be it below a path`(url: String, root: String) throws {
        let project = try project("", url: "url = \"\(url)\"\n").project
        #expect(project.authURL == root + "/auth/v1")
        #expect(project.gatewayURL == root)
        #expect(project.issuer == root + "/auth/v1")
    }

    @Test(arguments: [
        "http://abc.supabase.co", "http://10.0.0.1:54321", "abc.supabase.co", "", "https://abc.supabase.co?x=1",
        "https://abc.supabase.co#x", "https://user@abc.supabase.co", "ftp://abc.supabase.co",
    ])
    func `is at no other kind of url`(url: String) throws {
        #expect(try mistake("", url: "url = \"\(url)\"\n").hasPrefix("url: must be the project's https URL"))
    }

    @Test func `takes the publishable key, of the new form and of the old`() throws {
        for payload in ["{\"role\":\"anon\"}", "{}"] {
            let key = "e30.\(base64(payload)).c2ln"
            let lines = "provider = \"supabase\"\napi_key = \"\(key)\"\n\(Self.url)"
            #expect(try account(lines) != nil)
        }
    }

    @Test func `refuses a key that passes over every rule, and does not repeat it`() throws {
        for key in ["sb_secret_abcdef", "e30.\(base64("{\"role\":\"service_role\"}")).c2ln"] {
            let found = try mistakes("provider = \"supabase\"\napi_key = \"\(key)\"\n\(Self.url)")
            #expect(found.count == 1)
            #expect(found.first?.hasPrefix("api_key: is a secret key") == true)
            #expect(found.first?.contains(key) == false)
        }
        for key in ["", "two words", "schlüssel"] {
            let found = try mistakes("provider = \"supabase\"\napi_key = \"\(key)\"\n\(Self.url)")
            #expect(found.first?.hasPrefix("api_key: must be printable ASCII") == true)
        }
    }

    private func base64(_ text: String) -> String { Base64URL.encode(Array(text.utf8)) }

    @Test func `has rules of its own, and the usual ones where nothing is said`() throws {
        let bare = try project("")
        #expect(bare.callbackCarriesFlowKey)
        #expect(bare.oauthProvider == nil)
        #expect(!bare.allowsMissingNonce)
        #expect(bare.profileTable == nil)
        #expect(bare.profileFunction == nil)
        #expect(bare.functions == [] && bare.edgeFunctions == [])
        #expect(try account(Self.lines + Self.url)?.flowTimeout == .seconds(300))
        let full = try project(
            """
            oauth_provider = "custom:acme"
            allow_missing_nonce = true
            profile = { table = "profiles", key = "user_id" }
            profile_rpc = "get_or_create_profile"
            rpc = ["update_profile", "_x1"]
            edge_functions = ["send-invoice", "1st_x"]
            """)
        #expect(full.oauthProvider == "custom:acme")
        #expect(full.allowsMissingNonce)
        #expect(full.profileTable == "profiles")
        #expect(full.profileKey == "user_id")
        #expect(full.profileFunction == "get_or_create_profile")
        #expect(full.functions == ["update_profile", "_x1"])
        #expect(full.edgeFunctions == ["send-invoice", "1st_x"])
        #expect(try project("profile = { table = \"profiles\" }").profileKey == "id")
    }

    static let names = ["", "1st", "a-b", "a b", "a.b", "täbelle", "a;drop", "a/b", String(repeating: "a", count: 64)]

    @Test(arguments: names)
    func `has names that need no quotes, and says where another one stands`(name: String) throws {
        #expect(try mistake("rpc = [\"good\", \"\(name)\"]").hasPrefix("rpc: “\(name)” is not a name"))
        #expect(try mistake("profile = { table = \"\(name)\" }").hasPrefix("profile.table: is not a name"))
        #expect(try mistake("profile = { table = \"t\", key = \"\(name)\" }").hasPrefix("profile.key: is not a name"))
        let profile = "rpc = [\"good\"]\nprofile = { table = \"t\" }\n"
        #expect(try mistake(profile + "profile_rpc = \"\(name)\"").hasPrefix("profile_rpc: is not a name"))
    }

    @Test(arguments: ["", "a b", "a.b", "a:b", "a/b", "..", "funktiön"])
    func `has Edge Functions whose names are no paths, and says where another one stands`(name: String) throws {
        let found = try mistake("edge_functions = [\"good\", \"\(name)\"]")
        #expect(found.hasPrefix("edge_functions: “\(name)” is not a name"))
    }

    @Test(arguments: [
        ("profile = { key = \"id\" }", "profile: needs a table"), ("profile = {}", "profile: needs a table"),
        ("profile_rpc = \"make\"", "profile_rpc: creates a row of profile, which is missing"),
        ("profile = { table = \"t\", key = \"select\" }", "profile: “select” is a reserved parameter of PostgREST"),
        ("oauth_provider = \"goo gle\"", "oauth_provider: must be a provider's name"),
        ("oauth_provider = \"\"", "oauth_provider: must be a provider's name"),
        ("redirect_uri = \"app://cb?code=1\"", "redirect_uri: the parameter code"),
        ("redirect_uri = \"app://cb?flow=1\"", "redirect_uri: the parameter flow"),
        ("token_issuer = \"http://auth.example.org\"", "token_issuer: must be an https URL"),
        ("token_issuer = \"auth.example.org\"", "token_issuer: must be an https URL"),
        ("token_issuer = \"https://auth.example.org?x\"", "token_issuer: must be an https URL"),
        ("token_issuer = \"\"", "token_issuer: must be an https URL"),
        ("id_token_account = \"mail\"", "id_token_account: must name another account"),
        ("id_token_account = \"nobody\"", "id_token_account: there is no account of this name"),
        ("gateway = false\nrpc = [\"echo\"]", "rpc: needs the project's tables"),
        ("gateway = false\nedge_functions = [\"echo\"]", "edge_functions: needs the project's functions"),
        ("gateway = false\nprofile = { table = \"profiles\" }", "profile: needs the project's tables"),
    ])
    func `with a mistake says which`(line: String, start: String) throws {
        let found = try mistakes(Self.lines + Self.url + line)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.hasPrefix(start) == true, "\(found)")
    }

    @Test func `may have tokens of another issuer than its URL, such as a domain of its own`() throws {
        let project = try project("token_issuer = \"https://auth.example.org/auth/v1\"").project
        #expect(project.issuer == "https://auth.example.org/auth/v1")
        #expect(project.authURL == "https://abc.supabase.co/auth/v1")
    }

    @Test func `may name an account whose ID token signs in, which has one`() throws {
        let app = "[accounts.app]\n" + Self.lines + Self.url + "id_token_account = \"mail\"\n"
        let mail = "[accounts.mail]\nissuer = \"https://id.example.org\"\nclient_id = \"c\"\n"
        let folder = try Folder()
        func errors(_ text: String) throws -> [String] {
            try folder.write(text)
            return folder.report().errors.map { "\($0.key ?? ""): \($0.message)" }
        }
        #expect(try errors(app + mail).isEmpty)
        let key = "accounts.app.id_token_account"
        #expect(
            try errors(app + mail + "scopes = [\"email\"]\n") == [
                "\(key): has no ID tokens: the scope openid is not among its scopes"
            ])
        #expect(
            try errors(app + "[accounts.mail]\n" + Self.lines + Self.url) == [
                "\(key): is at a Supabase project itself, which gives no ID tokens"
            ])
    }

    @Test(arguments: [
        "token_issuer", "id_token_account", "url", "api_key", "oauth_provider", "profile_rpc", "rpc",
        "edge_functions", "allow_missing_nonce", "profile",
    ])
    func `has keys that no other provider has`(key: String) throws {
        let values = [
            "rpc": "[\"x\"]", "edge_functions": "[\"x\"]", "allow_missing_nonce": "true",
            "profile": "{ table = \"t\" }",
        ]
        let value = values[key] ?? "\"x\""
        let found = try mistakes("issuer = \"https://id.example.org\"\nclient_id = \"c\"\n\(key) = \(value)")
        #expect(found == ["\(key): belongs to provider = \"supabase\" only"])
    }

    @Test(arguments: [
        ("redirect_uri = \"http://localhost:{port}/cb\"", "http://localhost:*/cb/**"),
        ("redirect_uri = \"http://localhost:{port}\"", "http://localhost:*/**"),
        ("redirect_uri = \"http://localhost:8400/cb/\"", "http://localhost:8400/cb/**"),
        ("redirect_uri = \"app://cb\"", "app://cb?*"),
        ("redirect_uri = \"app://cb?x=1\"", "app://cb?*"), ("redirect_uri = \"app://cb?x=a.b\"", "app://cb?**"),
        ("redirect_uri = \"app://cb\"\nredirect_flow_key = \"none\"", "app://cb"),
        ("redirect_uri = \"https://app.example/cb\"", "https://app.example/cb?*"),
    ])
    func `says what its allow list must have`(lines: String, entry: String) throws {
        #expect(try account(Self.lines + Self.url + lines)?.redirectURIsToRegister == [entry])
        let folder = try Folder()
        try folder.write("[accounts.mail]\n\(Self.lines + Self.url + lines)\n")
        #expect(try folder.load().accounts.map(\.registration) == ["redirect URL to add to the project: \(entry)"])
    }

    /// The server takes loopback addresses of itself, with any port and path; the name localhost it does not know.
    @Test(arguments: [
        "", "redirect_uri = \"http://127.0.0.1:8400/cb\"", "redirect_uri = \"http://127.0.0.1:{port}/cb\"",
        "redirect_uri = \"http://[::1]:8400/cb\"",
    ])
    func `needs no entry for a loopback address`(lines: String) throws {
        #expect(try account(Self.lines + Self.url + lines)?.redirectURIsToRegister == [])
        let folder = try Folder()
        try folder.write("[accounts.mail]\n\(Self.lines + Self.url + lines)\n")
        #expect(try folder.load().accounts.map(\.registration) == ["no redirect URL to add"])
        #expect(folder.report().json.contains(#""redirect_uri":"""#))
    }
}
