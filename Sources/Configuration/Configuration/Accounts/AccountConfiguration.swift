public import OAuth
public import RingbackBase

/// A configured account: provider, client and scopes. All values are checked.
public struct AccountConfiguration: Sendable, Equatable {
    /// `[a-z0-9][a-z0-9._-]{0,63}`
    public let name: String
    public let provider: AccountProvider
    /// Our client id at the provider; empty for Supabase, which has no client registrations.
    public let clientID: String
    /// Nil if it is not stated and the provider's metadata decide (RFC 8414: the default is basic).
    public let clientAuthentication: ClientAuthentication?
    public let clientSecret: ClientSecretSource
    /// A path that ``readClientKey(user:)`` reads each time it is needed; nil if the client has no key.
    public let clientKeyFile: String?
    /// The name of the credential with the key, if it is not in a file (`$CREDENTIALS_DIRECTORY/NAME`).
    public let clientKeyCredential: String?
    /// The key's id (`kid`) at the provider; nil if it is in the key's file or not needed.
    public let clientKeyID: String?
    public let scopes: [String]
    /// Nil for accounts with sign-in.
    public let service: ServiceConfiguration?
    public let redirect: RedirectTarget
    /// As written in the configuration; nil for the default.
    public let redirectURI: String?
    /// Where the provider sends the browser after RP-initiated logout; nil if it stays.
    public let postLogoutRedirectURI: String?
    /// `query` or `form_post`; nil if the request does not state it.
    public let responseMode: ResponseMode?
    /// True if every authorization response must have `iss` (RFC 9207), whatever the provider's metadata say.
    public let requiresIssuerInResponse: Bool
    public let pushedRequests: PushedRequests
    public let dpop: DPoPUse
    /// True if the user is asked for consent (`prompt=consent`) when `offline_access` is requested by OpenID Connect.
    public let asksConsentForOfflineAccess: Bool
    /// Additional parameters of the authorization request from preset and configuration, sorted by name.
    public let authorizationParameters: [FormEncoding.Pair]
    public let flowTimeout: Duration
    /// How many seconds before expiry a token is refreshed; nil for the default.
    public let refreshMargin: Int?
    /// How many seconds before a session's end a warning is given, largest first; nil for the defaults.
    public let sessionWarnings: [Int]?
    /// Other users whose connections may deliver a callback.
    public let callbackPeerUIDs: [UInt32]
    /// The accepted certificates and public keys; `ca_file` was read with the configuration.
    public let trust: ServerTrust
    /// The path of `ca_file`; nil for the system's certificate authorities.
    public let certificateFile: String?
    public let route: HTTPRoute
    /// Additional header fields of all requests to the provider.
    public let headers: [FormEncoding.Pair]
    /// How the sign-in page is opened.
    public let page: PageSettings
    /// Nil for the default of `[consent]`.
    public let consent: ConsentMode?
    /// The programs that need no consent: absolute paths, and `unit:NAME`.
    public let programs: [String]
    public internal(set) var source: ConfigurationSource
    /// The line of each key in the table.
    var lines: [String: Int]

    public func hasSameSettings(as other: AccountConfiguration) -> Bool {
        var moved = other
        (moved.source, moved.lines) = (source, lines)
        return self == moved
    }
}

public struct ConfigurationSource: Sendable, Equatable, CustomStringConvertible {
    public let file: String
    /// From 1.
    public let line: Int

    public var description: String { "\(file):\(line)" }
    var json: JSON { ["file": .string(file), "line": .integer(line)] }
}

/// An account's provider, and where its endpoints come from.
public enum AccountProvider: Sendable, Equatable {
    case preset(ProviderPreset)
    /// By discovery from this issuer.
    case oidc(issuer: String)
    case oauth2(ProviderMetadata)
    case supabase(SupabaseConfiguration)
    /// From the metadata that the MCP server announces at each sign-in.
    case mcp(MCPConfiguration)

    /// The value in the socket API: a preset's name, `supabase`, `mcp`, `oidc` or `oauth2`.
    public var word: String {
        switch self {
        case .preset(let preset): preset.name
        case .oidc: "oidc"
        case .oauth2: "oauth2"
        case .supabase: "supabase"
        case .mcp: "mcp"
        }
    }

    /// The issuer for discovery; nil if there is no discovery.
    public var issuer: String? {
        switch self {
        case .oidc(let issuer): issuer
        case .preset(let preset): if case .issuer(let issuer)? = try? preset.source() { issuer } else { nil }
        case .oauth2, .supabase, .mcp: nil
        }
    }

    /// The endpoints, if they are known without discovery.
    public var endpoints: ProviderMetadata? {
        switch self {
        case .oauth2(let endpoints): endpoints
        case .preset(let preset): if case .endpoints(let endpoints)? = try? preset.source() { endpoints } else { nil }
        case .oidc, .supabase, .mcp: nil
        }
    }
}

/// Where the client secret is. Printing it shows no secret, because an inline one is a ``Secret``.
public enum ClientSecretSource: Sendable, Equatable {
    case none
    case inline(Secret)
    /// A path that ``AccountConfiguration/readClientSecret(user:)`` reads each time it is needed.
    case file(path: String)
    /// An argument vector, which only the helper process runs.
    case command([String])
    /// The name of a credential that was passed to the daemon at its start or is in `$CREDENTIALS_DIRECTORY`.
    case credential(String)
    /// In the vault, from the dynamic client registration.
    case registered
}

extension AccountConfiguration {
    /// An error that is found only when a value is used, such as a missing file or credential.
    public func mistake(at key: String, _ message: String) -> ConfigurationError { mistake(at: key, Mistake(message)) }

    func mistake(at key: String, _ mistake: Mistake) -> ConfigurationError {
        ConfigurationError(
            file: source.file, line: lines[key] ?? source.line, key: "accounts.\(name).\(key)",
            message: mistake.message, cause: mistake.cause)
    }

    /// The key that names the credential of ``clientSecretCredential``.
    public var clientCredentialKey: String {
        lines["client_secret_credential"] == nil ? "client_secret_file" : "client_secret_credential"
    }

    /// The additional parameters in the form that ``AuthorizationRequest`` takes.
    public var additionalParameters: [(String, String)] { authorizationParameters.map { ($0.name, $0.value) } }

    public var clientSecretCommand: [String]? {
        if case .command(let command) = clientSecret { command } else { nil }
    }
}

extension AccountConfiguration {
    /// Reads an account from text that is not in a file yet, by the rules for a file in `accounts.d`. Throws all
    /// errors, with an empty file name.
    public static func read(
        _ name: String, in text: String, at place: ConfigurationPlace
    ) throws(ConfigurationErrors) -> AccountConfiguration {
        let document: TOMLDocument
        do throws(TOMLDocument.SyntaxError) {
            document = try TOMLDocument(parsing: Array(text.utf8))
        } catch {
            throw ConfigurationErrors([ConfigurationError(file: "", line: error.line, message: error.message)])
        }
        let check = KeyCheck(file: "", isDropIn: true)
        let root = TOMLMembers(members: check.check(document.root, as: .file, at: []))
        guard let node = root.table("accounts")?.node(name) else {
            let missing = ConfigurationError(file: "", message: "has no account \(name)")
            throw ConfigurationErrors(check.errors.isEmpty ? [missing] : check.report)
        }
        let table = SettingTable(["accounts", name], node, place: place, isPrivateFile: true, check: check)
        guard let account = AccountReader(table: table).read(), check.errors.isEmpty else {
            throw ConfigurationErrors(check.report)
        }
        return account
    }
}

/// `default = "NAME"`: the account that commands use if they name none.
public struct DefaultAccount: Sendable, Equatable {
    public let name: String
    public let source: ConfigurationSource

    func mistakes(knowing accounts: some Collection<String>) -> [ConfigurationError] {
        guard !accounts.contains(name) else { return [] }
        let hint = NearestWord.hint(for: name, among: accounts)
        return [source.mistake("default", "names an account that does not exist\(hint)")]
    }

    var json: JSON { ["account": .string(name), "source": source.json] }
}
