internal import HTTPMessages

/// Providers that many people have, by name: what one must know of them to sign in, and no more. A preset fills in what
/// the configuration leaves out; it never overrules it.
public enum ProviderPreset: Sendable, Equatable {
    case google
    /// The directory's id, or `common` or `organizations` for the place that directories share: there every directory's
    /// own word counts, see ``ProviderMetadata/idTokenIssuer``.
    case microsoft(tenant: String)
    case github
    /// `gitlab.com`, or the host of one's own GitLab, with a port if it has one.
    case gitlab(host: String)

    /// How the provider's endpoints become known.
    public enum Source: Sendable, Equatable {
        /// By discovery from this issuer.
        case issuer(String)
        /// Known beforehand: the provider publishes none that we may rely on.
        case endpoints(ProviderMetadata)
    }

    /// The names that a configuration may give, sorted.
    public static let names = ["github", "gitlab", "google", "microsoft"]

    /// Finds a preset. `tenant` is Microsoft's and needed there, `host` GitLab's; where they do not belong they are
    /// refused. Throws `.misconfigured` with what is missing or wrong.
    public init(name: String, tenant: String? = nil, host: String? = nil) throws(OAuthError) {
        guard tenant == nil || name == "microsoft" else {
            throw .misconfigured(reason: "a tenant belongs to the provider microsoft only")
        }
        guard host == nil || name == "gitlab" else {
            throw .misconfigured(reason: "a host belongs to the provider gitlab only")
        }
        switch name {
        case "google": self = .google
        case "github": self = .github
        case "gitlab": self = .gitlab(host: try ProviderPreset.checked(host: host ?? "gitlab.com"))
        case "microsoft":
            self = .microsoft(tenant: try ProviderPreset.checked(tenant: tenant))
        default:
            throw .misconfigured(reason: "unknown provider; known are \(ProviderPreset.names.joined(separator: ", "))")
        }
    }

    /// As written in a configuration and shown as an account's `provider`.
    public var name: String {
        switch self {
        case .google: "google"
        case .microsoft: "microsoft"
        case .github: "github"
        case .gitlab: "gitlab"
        }
    }

    /// Where the endpoints come from. Throws only for a value that ``init(name:tenant:host:)`` would have refused.
    public func source() throws(OAuthError) -> Source {
        switch self {
        case .google: .issuer("https://accounts.google.com")
        case .microsoft(let tenant): .issuer("https://login.microsoftonline.com/\(tenant)/v2.0")
        case .gitlab(let host): .issuer("https://\(host)")
        case .github: .endpoints(try ProviderPreset.gitHub())
        }
    }

    /// No OpenID Connect for people and no RFC 7009: a token is all there is. Whose it is, the API says.
    private static func gitHub() throws(OAuthError) -> ProviderMetadata {
        var metadata = try ProviderMetadata(
            authorizationEndpoint: "https://github.com/login/oauth/authorize",
            tokenEndpoint: "https://github.com/login/oauth/access_token",
            userinfoEndpoint: "https://api.github.com/user",
            deviceAuthorizationEndpoint: "https://github.com/login/device/code")
        metadata.userinfoDialect = .gitHub
        return metadata
    }

    /// Google and GitHub give every client a secret, the others only confidential ones; all four take it in the form.
    public func clientAuthentication(hasSecret: Bool) -> ClientAuthentication {
        hasSecret ? .clientSecretPost : .none
    }

    /// What the account's authorization requests add unless the configuration says otherwise.
    public var authorizationParameters: [(String, String)] {
        switch self {
        // Google's word for the scope `offline_access`, which it does not know.
        case .google: [("access_type", "offline")]
        case .microsoft, .github, .gitlab: []
        }
    }

    /// A redirect URI other than the usual loopback address; nil for the usual one. Microsoft ignores the port of
    /// `http://localhost` only, not that of an address.
    public var redirectURI: String? {
        switch self {
        case .microsoft: "http://localhost:{port}"
        case .google, .github, .gitlab: nil
        }
    }

    /// Where Microsoft keeps persons without an organization: what it calls `consumers` states this directory's issuer.
    private static let personalDirectory = "9188040d-6c67-4c5b-b112-36a304b66dad"

    private static func checked(tenant: String?) throws(OAuthError) -> String {
        switch tenant?.lowercased() {
        case let alias? where ["common", "organizations"].contains(alias): return alias
        case "consumers"?: return personalDirectory
        case let id? where IssuerTemplate.isDirectoryID(id): return id
        default:
            throw .misconfigured(
                reason: "microsoft needs the tenant: its id (xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx), or common, "
                    + "organizations or consumers")
        }
    }

    private static func checked(host: String) throws(OAuthError) -> String {
        let url = try? WebURL(parsing: "https://\(host)")
        guard let url, url.path.isEmpty, url.query == nil, url.fragment == nil else {
            throw .misconfigured(reason: "the host is not a name with an optional port")
        }
        return host
    }
}
