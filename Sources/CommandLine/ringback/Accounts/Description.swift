import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient

/// The options of `account add` that describe an account. The daemon's check decides whether they make sense.
struct AccountDescription: ParsableArguments {
    @Option(help: ArgumentHelp("An OpenID Connect provider, found by discovery.", valueName: "url"))
    var issuer: String?

    @Option(help: "A preset: google, microsoft, github, gitlab, or supabase.", completion: Completions.presets)
    var provider: String?

    @Option(help: ArgumentHelp("An MCP server; its issuer and the client are found by asking it.", valueName: "url"))
    var mcp: String?

    @Option(
        name: .customLong("client-id-metadata-url"),
        help: ArgumentHelp(
            "With --mcp: where you host the document that “ringback client-metadata” prints, for servers that take it as "
                + "the client.", valueName: "url"))
    var clientMetadataURL: String?

    @Flag(
        name: .customLong("no-resource-parameter"),
        help: "With --mcp: the authorization server refuses the parameter resource, as Entra does.")
    var leavesOutResource = false

    @Flag(
        name: .customLong("no-sign-in"),
        help: "With --mcp: the server takes requests without a token. It is found out by asking it.")
    var needsNoSignIn = false

    @Option(help: "The directory of a microsoft account.")
    var tenant: String?

    @Option(help: ArgumentHelp("The project of a supabase account.", valueName: "url"))
    var url: String?

    @Option(help: ArgumentHelp("The publishable key of a supabase project.", valueName: "key"))
    var apiKey: String?

    @Flag(
        name: .customLong("no-gateway"),
        help: "--url is a Supabase Auth server itself, with no API gateway before it; no --api-key is needed.")
    var isBare = false

    @Option(help: ArgumentHelp("The client id from the provider.", valueName: "id"))
    var clientID: String?

    @Option(help: ArgumentHelp("A file that holds the client's secret, readable by you alone.", valueName: "path"))
    var clientSecretFile: String?

    @Option(
        name: .customLong("client-secret-fd"),
        help: ArgumentHelp(
            "The descriptor from which to read the client's secret, for the account's file; 0 is standard input. The "
                + "secret is never an argument.", valueName: "fd"))
    var clientSecretDescriptor: Int32?

    /// The secret that was read.
    var clientSecret: String?
    var hasSecret: Bool { clientSecret != nil || clientSecretFile != nil }

    /// The provider lists its scopes without `offline_access`, and the user has named none.
    var leavesOutOfflineAccess = false

    @Option(
        help: ArgumentHelp(
            "A file with the client's private key, PEM or JWK, for private_key_jwt; readable by you alone.",
            valueName: "path"))
    var clientKeyFile: String?

    @Option(help: "none, client_secret_basic, client_secret_post or private_key_jwt.")
    var clientAuthentication: String?

    @Option(name: .customLong("scope"), help: "A scope to ask for; may be repeated.")
    var scopes: [String] = []

    @Option(name: .customLong("redirect-uri"), help: "Where callbacks go, if not to a free port on loopback.")
    var redirectURI: String?

    @Option(help: "How the browser delivers the response: query or form_post.")
    var responseMode: String?

    @Option(
        name: .customLong("ca-file"), help: ArgumentHelp("Certificates to trust for this account.", valueName: "path"))
    var caFile: String?

    @Option(help: ArgumentHelp("For a provider without discovery.", valueName: "url"))
    var authorizationEndpoint: String?

    @Option(help: ArgumentHelp("For a provider without discovery.", valueName: "url"))
    var tokenEndpoint: String?

    @Option(help: ArgumentHelp("For a provider without discovery.", valueName: "url"))
    var revocationEndpoint: String?

    @Option(
        help: ArgumentHelp(
            "For a provider without discovery: the URL that names the signed-in user (userinfo).", valueName: "url"))
    var userinfoEndpoint: String?

    /// The option that sets a key of the account's table, such as `endpoints.token`; nil if there is none.
    static func option(for key: String) -> String? {
        switch key {
        case "issuer", "mcp", "provider", "tenant", "url", "api_key", "client_id", "client_secret_file",
            "client_key_file",
            "client_authentication", "redirect_uri", "response_mode", "ca_file":
            "--" + key.replacing("_", with: "-")
        case "client_id_metadata_url": "--client-id-metadata-url"
        case "gateway": "--no-gateway"
        case "resource_parameter": "--no-resource-parameter"
        case "sign_in": "--no-sign-in"
        case "scopes": "--scope"
        case "client_secret": "--client-secret-fd"
        case "endpoints.authorization": "--authorization-endpoint"
        case "endpoints.token": "--token-endpoint"
        case "endpoints.revocation": "--revocation-endpoint"
        case "endpoints.userinfo": "--userinfo-endpoint"
        default: nil
        }
    }

    /// How the provider is named.
    static let kinds =
        "--issuer URL, or --provider PRESET, or --mcp URL, or --authorization-endpoint URL with --token-endpoint URL"

    /// No provider is named yet.
    var isOpen: Bool {
        issuer == nil && provider == nil && mcp == nil && authorizationEndpoint == nil && tokenEndpoint == nil
    }

    /// True for the sandbox's own client, which may have its callbacks at every loopback address: there is nothing to
    /// register.
    var isSandbox: Bool {
        clientID == ProviderChoice.sandboxClient && issuer.flatMap { LoopbackURL($0) } != nil && redirectURI == nil
    }

    /// What has to be said and is not, as options.
    ///
    /// - Parameters:
    ///   - name: the account's, if it was said.
    ///   - registers: the provider registers the client.
    func missing(_ name: String?, registers: Bool) -> [String] {
        var missing: [String] = []
        if name == nil { missing.append("NAME") }
        if isOpen { missing.append("the provider (\(AccountDescription.kinds))") }
        if provider == "microsoft", tenant == nil { missing.append("--tenant") }
        if provider == "supabase" {
            if url == nil { missing.append("--url") }
            if apiKey == nil, !isBare { missing.append("--api-key, or --no-gateway") }
        } else if clientID == nil, mcp == nil, !registers {
            missing.append("--client-id")
        }
        return missing
    }

    /// An account has one kind of provider. One that is not named yet is no mistake here.
    func check() throws {
        // Beside an MCP server the issuer says where the client was registered.
        let kinds = [
            issuer != nil && mcp == nil, mcp != nil, provider != nil,
            authorizationEndpoint != nil || tokenEndpoint != nil,
        ]
        guard kinds.filter({ $0 }).count <= 1 else {
            throw ValidationError("Name the provider: \(AccountDescription.kinds).")
        }
        guard mcp != nil || (clientMetadataURL == nil && !leavesOutResource && !needsNoSignIn) else {
            throw ValidationError(
                "--client-id-metadata-url, --no-resource-parameter and --no-sign-in belong to --mcp.")
        }
        guard clientSecretFile == nil || clientSecretDescriptor == nil else {
            throw ValidationError("--client-secret-file and --client-secret-fd exclude each other.")
        }
        guard (authorizationEndpoint == nil) == (tokenEndpoint == nil) else {
            throw ValidationError("--authorization-endpoint and --token-endpoint belong together.")
        }
    }

    /// The scopes that give an ID token and a refresh token at an OpenID provider, unless others were named.
    var usualScopes: [String] {
        guard scopes.isEmpty, issuer != nil, mcp == nil else { return scopes }
        return AccountDescription.scopesOfIssuer.filter { $0 != "offline_access" || !leavesOutOfflineAccess }
    }

    /// The scopes of an account with an issuer, if the user names none.
    static let scopesOfIssuer = ["openid", "email", "offline_access"]

    var absoluteCAFile: String? { caFile.map(AccountDescription.absolute) }

    /// The text of the account's file. It holds what a registration yielded, except secrets.
    func text(for name: String, registered: RegisteredAccount? = nil) -> String {
        var text = AccountText(name: name)
        text.add("mcp", mcp)
        text.add("client_id_metadata_url", clientMetadataURL)
        if leavesOutResource { text.add("resource_parameter", is: false) }
        if needsNoSignIn { text.add("sign_in", is: false) }
        text.add("issuer", issuer)
        text.add("provider", provider)
        text.add("tenant", tenant)
        text.add("url", url)
        text.add("api_key", apiKey)
        if isBare { text.add("gateway", is: false) }
        text.add("client_id", registered?.clientID ?? clientID)
        text.add("client_secret", clientSecret)
        text.add("client_secret_file", clientSecretFile.map(AccountDescription.absolute))
        if registered?.hasSecret == true { text.add("client_secret_registered", is: true) }
        text.add("client_key_file", clientKeyFile.map(AccountDescription.absolute))
        text.add("client_authentication", registered?.authentication ?? clientAuthentication)
        // The user did not choose the usual scopes. Those that the provider did not register are left out.
        text.add("scopes", scopes.isEmpty ? registered?.scopes ?? usualScopes : scopes)
        // Registered with its port.
        text.add("redirect_uri", redirectURI ?? registered?.requestedRedirectURIs.first)
        text.add("response_mode", responseMode)
        text.add("ca_file", absoluteCAFile)
        text.addTable(
            "endpoints",
            [
                ("authorization", authorizationEndpoint), ("token", tokenEndpoint), ("revocation", revocationEndpoint),
                ("userinfo", userinfoEndpoint),
            ])
        return text.text
    }

    /// Makes a path absolute: the daemon has another working directory than this shell.
    private static func absolute(_ path: String) -> String {
        path.hasPrefix("~/") ? path : Path.absolute(path) ?? path
    }
}
