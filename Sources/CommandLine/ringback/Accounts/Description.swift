import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient

/// The options of `account add` that describe an account. The daemon's check decides whether they make sense.
struct AccountDescription: ParsableArguments {
    @Option(help: .value("url", "An OpenID Connect provider, found by discovery.")) var issuer: String?

    @Option(help: "A preset: google, microsoft, github, gitlab, or supabase.", completion: Completions.presets)
    var provider: String?

    @Option(help: .value("url", "An MCP server; its issuer and the client are found by asking it.")) var mcp: String?

    @Option(
        help: .value(
            "url",
            "With --mcp: where you host the document that “ringback client-metadata” prints, for servers that take it as "
                + "the client."))
    var clientIDMetadataURL: String?

    @Flag(help: "With --mcp: the authorization server refuses the parameter resource, as Entra does.")
    var noResourceParameter = false

    @Flag(help: "With --mcp: the server takes requests without a token. It is found out by asking it.")
    var noSignIn = false

    @Option(help: "The directory of a microsoft account.") var tenant: String?
    @Option(help: .value("url", "The project of a supabase account.")) var url: String?
    @Option(help: .value("key", "The publishable key of a supabase project.")) var apiKey: String?

    @Flag(help: "--url is a Supabase Auth server itself, with no API gateway before it; no --api-key is needed.")
    var noGateway = false

    @Option(help: .value("id", "The client id from the provider.")) var clientID: String?

    @Option(help: .value("path", "A file that holds the client's secret, readable by you alone."))
    var clientSecretFile: String?

    @Option(
        help: .value(
            "fd",
            "The descriptor from which to read the client's secret, for the account's file; 0 is standard input. The "
                + "secret is never an argument."))
    var clientSecretFD: Int32?
    var clientSecret: String?
    var hasSecret: Bool { clientSecret != nil || clientSecretFile != nil }

    @Option(help: .value("name", "A secret that the daemon is given when it is started, by its name there."))
    var credential: String?
    /// A secret or a key, wherever it is.
    var hasProof: Bool { hasSecret || credential != nil || clientKeyFile != nil }

    /// The provider lists its scopes without `offline_access`, and the user has named none.
    var leavesOutOfflineAccess = false

    @Option(
        help: .value(
            "path",
            "A file with the client's private key, PEM or JWK, for private_key_jwt and self_issued_jwt; readable by you "
                + "alone."))
    var clientKeyFile: String?

    @Option(help: "none, client_secret_basic, client_secret_post or private_key_jwt.") var clientAuthentication: String?
    @Option(
        help: """
            A service account, without a user: client_credentials, jwt_bearer, self_issued_jwt, saml2_bearer or \
            token_exchange.
            """)
    var grant: String?

    @Option(
        help: .value(
            "account", "With --mcp: the account whose sign-in brings the tokens (enterprise-managed authorization)."),
        completion: Completions.accounts)
    var through: String?

    @Option(help: .value("path", "With --grant: the token to exchange, read again for each request."))
    var assertionFile: String?

    @Option(help: "With --grant: the audience of the tokens.") var audience: String?
    /// The account has no sign-in. Its configuration has its credentials.
    var isService: Bool { grant != nil || through != nil }
    /// In an assertion grant the client id may be missing (RFC 7521 section 4.1).
    var mayBeUnnamed: Bool { grant != nil && grant != "client_credentials" && !hasProof }
    @Option(name: .customLong("scope"), help: "A scope to ask for; may be repeated.") var scopes: [String] = []
    @Option(help: "Where callbacks go, if not to a free port on loopback.") var redirectURI: String?
    @Option(help: "How the browser delivers the response: query or form_post.") var responseMode: String?
    @Option(help: "Which tokens are bound to a key (DPoP): off, refresh-only or required.") var dpop: String?
    @Option(help: .value("path", "Certificates to trust for this account.")) var caFile: String?
    @Option(help: .value("url", "For a provider without discovery.")) var authorizationEndpoint: String?
    @Option(help: .value("url", "For a provider without discovery.")) var tokenEndpoint: String?
    @Option(help: .value("url", "For a provider without discovery.")) var revocationEndpoint: String?

    @Option(help: .value("url", "For a provider without discovery: the URL that names the signed-in user (userinfo)."))
    var userinfoEndpoint: String?

    /// The option that sets a key of the account's table, such as `endpoints.token`; nil if there is none.
    static func option(for key: String) -> String? {
        let others = [
            "gateway": "--no-gateway", "resource_parameter": "--no-resource-parameter", "sign_in": "--no-sign-in",
            "scopes": "--scope", "client_secret": "--client-secret-fd", "client_secret_credential": "--credential",
        ]
        if key.hasPrefix("endpoints."), let name = key.split(separator: ".").last {
            return ["authorization", "token", "revocation", "userinfo"].contains(name) ? "--\(name)-endpoint" : nil
        }
        let same: Set = [
            "issuer", "mcp", "client_id_metadata_url", "provider", "tenant", "url", "api_key", "client_id",
            "client_secret_file", "client_key_file", "client_authentication", "redirect_uri", "response_mode",
            "ca_file", "grant", "through", "assertion_file", "audience", "dpop",
        ]
        return others[key] ?? (same.contains(key) ? "--" + key.replacing("_", with: "-") : nil)
    }

    static let kinds =
        "--issuer URL, or --provider PRESET, or --mcp URL, or --authorization-endpoint URL with --token-endpoint URL"

    var isOpen: Bool {
        issuer == nil && provider == nil && mcp == nil && authorizationEndpoint == nil && tokenEndpoint == nil
    }

    /// The sandbox's own client may have its callbacks at every loopback address: there is nothing to register.
    var isSandbox: Bool {
        clientID == ProviderChoice.sandboxClient && issuer.flatMap { LoopbackURL($0) } != nil && redirectURI == nil
    }

    func missing(_ name: String?, registers: Bool) -> [String] {
        var missing: [String] = []
        if name == nil { missing.append("NAME") }
        if isOpen { missing.append("the provider (\(AccountDescription.kinds))") }
        if provider == "microsoft", tenant == nil { missing.append("--tenant") }
        if provider == "supabase" {
            if url == nil { missing.append("--url") }
            if apiKey == nil, !noGateway { missing.append("--api-key, or --no-gateway") }
        } else if clientID == nil, mcp == nil, !registers, !mayBeUnnamed {
            missing.append("--client-id")
        }
        return missing
    }

    func check() throws {
        // Beside an MCP server the issuer says where the client was registered.
        let kinds = [
            issuer != nil && mcp == nil, mcp != nil, provider != nil,
            authorizationEndpoint != nil || tokenEndpoint != nil,
        ]
        try require(kinds.filter({ $0 }).count <= 1, "Name the provider: \(AccountDescription.kinds).")
        try require(
            mcp != nil || (clientIDMetadataURL == nil && !noResourceParameter && !noSignIn),
            "--client-id-metadata-url, --no-resource-parameter and --no-sign-in belong to --mcp.")
        try require(
            through == nil || (mcp != nil && grant == nil), "--through belongs to --mcp, and not beside --grant.")
        try require(
            clientSecretFile == nil || clientSecretFD == nil,
            "--client-secret-file and --client-secret-fd exclude each other.")
        try require(
            (authorizationEndpoint == nil) == (tokenEndpoint == nil) || (grant != nil && tokenEndpoint != nil),
            "--authorization-endpoint and --token-endpoint belong together.")
    }

    /// The scopes that give an ID token and a refresh token at an OpenID provider, unless others were named.
    var usualScopes: [String] {
        guard scopes.isEmpty, issuer != nil, mcp == nil, !isService else { return scopes }
        return AccountDescription.scopesOfIssuer.filter { $0 != "offline_access" || !leavesOutOfflineAccess }
    }

    /// The same place without a client, to be asked what it announces.
    var withoutClient: AccountDescription {
        var bare = self
        (bare.grant, bare.through, bare.assertionFile, bare.audience) = (nil, nil, nil, nil)
        (bare.clientID, bare.clientAuthentication, bare.clientKeyFile) = (nil, nil, nil)
        (bare.clientSecret, bare.clientSecretFile, bare.credential) = (nil, nil, nil)
        return bare
    }

    static let scopesOfIssuer = ["openid", "email", "offline_access"]

    var absoluteCAFile: String? { caFile.map(AccountDescription.absolute) }

    /// The text of the account's file. It holds what a registration yielded, except secrets.
    func text(for name: String, registered: RegisteredAccount? = nil) -> String {
        let text = { (value: String?) in value.map(AccountText.quoted) }
        let path = { (value: String?) in value.map { AccountText.quoted(AccountDescription.absolute($0)) } }
        let keys: [(String, String?)] = [
            ("mcp", text(mcp)), ("client_id_metadata_url", text(clientIDMetadataURL)),
            ("resource_parameter", noResourceParameter ? "false" : nil), ("sign_in", noSignIn ? "false" : nil),
            ("issuer", text(issuer)), ("provider", text(provider)), ("tenant", text(tenant)), ("url", text(url)),
            ("api_key", text(apiKey)), ("gateway", noGateway ? "false" : nil),
            ("client_id", text(registered?.clientID ?? clientID)), ("client_secret", text(clientSecret)),
            ("client_secret_file", path(clientSecretFile)),
            ("client_secret_registered", registered?.hasSecret == true ? "true" : nil),
            ("client_secret_credential", text(credential)), ("client_key_file", path(clientKeyFile)),
            ("client_authentication", text(registered?.authentication ?? clientAuthentication)),
            ("grant", text(grant)), ("through", text(through)), ("assertion_file", path(assertionFile)),
            ("audience", text(audience)),
            // The user did not choose the usual scopes. Those that the provider did not register are left out.
            ("scopes", AccountText.array(scopes.isEmpty ? registered?.scopes ?? usualScopes : scopes)),
            // Registered with its port.
            ("redirect_uri", text(redirectURI ?? registered?.requestedRedirectURIs.first)),
            ("response_mode", text(responseMode)), ("dpop", text(dpop)), ("ca_file", path(caFile)),
        ]
        let endpoints: [(String, String?)] = [
            ("authorization", text(authorizationEndpoint)), ("token", text(tokenEndpoint)),
            ("revocation", text(revocationEndpoint)), ("userinfo", text(userinfoEndpoint)),
        ]
        // Always quoted: a bare name may not have dots.
        let table = "accounts.\(AccountText.quoted(name))"
        let more = endpoints.contains { $0.1 != nil } ? "\n" + AccountText.table("\(table).endpoints", endpoints) : ""
        let head = "# Written by ringback account add.\n"
        return head + AccountText.table(table, keys) + more
    }

    /// Makes a path absolute: the daemon has another working directory than this shell.
    private static func absolute(_ path: String) -> String {
        path.hasPrefix("~/") ? path : Path.absolute(path) ?? path
    }
}

struct AccountFile {
    let directory: String
    let name: String
    let configuration: String

    init(name: String, configuration stated: String?) throws(RingbackError) {
        var file = stated ?? SocketPlace.variable("RINGBACK_CONFIG") ?? ""
        if file.isEmpty {
            guard let base = Files.place("XDG_CONFIG_HOME") ?? Files.place("HOME").map({ $0 + "/.config" }) else {
                throw RingbackError(
                    "no_place", "There is no place for the configuration: set HOME, or name the file with --config.")
            }
            file = base + "/ringback/config.toml"
        }
        configuration = file
        let folder = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
        directory = (folder.isEmpty ? "/" : folder) + "/accounts.d"
        self.name = name
    }

    var path: String { "\(directory)/\(name).toml" }
    var candidate: CandidateFile { CandidateFile(for: path) }

    /// Has the daemon's own check read a text as if it were this file. Leaves no file.
    func check(_ text: String, config: String?) throws(RingbackError) -> JSON {
        try Files.makeDirectories(directory, mode: 0o700)
        try candidate.write(Array(text.utf8))
        defer { candidate.discard() }
        return try ConfigurationCheck.run(config: config, candidate: self)
    }

    func write(_ text: String, replacing replaces: Bool) throws(RingbackError) {
        try candidate.put(Array(text.utf8), replacing: replaces)
    }

    var exists: Bool { unsafe access(path, F_OK) == 0 }

    func remove() throws(RingbackError) {
        guard unsafe unlink(path) == 0 else { throw Files.failure("remove", path) }
        CandidateFile.syncFolder(of: path)
    }
}

/// TOML in a form that every reader understands: one table, one line for each key.
enum AccountText {
    static func table(_ name: String, _ keys: [(key: String, value: String?)]) -> String {
        keys.reduce("[\(name)]\n") { text, pair in text + (pair.value.map { "\(pair.key) = \($0)\n" } ?? "") }
    }

    static func oneOrMore(_ values: [String]) -> String? { values.count == 1 ? quoted(values[0]) : array(values) }

    static func array(_ values: [String]) -> String? {
        values.isEmpty ? nil : "[\(values.map(quoted).joined(separator: ", "))]"
    }

    /// A basic string; what TOML does not allow in one is escaped.
    static func quoted(_ value: String) -> String {
        var output = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": output += "\\\""
            case "\\": output += "\\\\"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                output += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            default: output.unicodeScalars.append(scalar)
            }
        }
        return output + "\""
    }
}
