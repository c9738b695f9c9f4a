internal import RingbackBase

/// Well-known providers by name. A preset provides defaults; the configuration has priority.
public enum ProviderPreset: Sendable, Equatable {
    case google
    /// The directory's id, or `common` or `organizations` for the location that directories share.
    case microsoft(tenant: String)
    case github
    /// `gitlab.com`, or the host (with an optional port) of a self-managed GitLab.
    case gitlab(host: String)

    public enum Source: Sendable, Equatable {
        /// Discovery from this issuer.
        case issuer(String)
        /// Fixed endpoints, because the provider publishes no suitable metadata.
        case endpoints(ProviderMetadata)
    }

    public static let names = ["github", "gitlab", "google", "microsoft"]

    /// `tenant` is required for Microsoft, `host` is optional for GitLab; with others they throw `.misconfigured`.
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
        case "microsoft": self = .microsoft(tenant: try ProviderPreset.checked(tenant: tenant))
        default:
            throw .misconfigured(reason: "unknown provider; known are \(ProviderPreset.names.joined(separator: ", "))")
        }
    }

    /// As in the configuration and in an account's `provider`.
    public var name: String {
        switch self {
        case .google: "google"
        case .microsoft: "microsoft"
        case .github: "github"
        case .gitlab: "gitlab"
        }
    }

    /// Throws `.misconfigured` only for values that ``init(name:tenant:host:)`` does not create.
    public func source() throws(OAuthError) -> Source {
        switch self {
        case .google: .issuer("https://accounts.google.com")
        case .microsoft(let tenant): .issuer("https://login.microsoftonline.com/\(tenant)/v2.0")
        case .gitlab(let host): .issuer("https://\(host)")
        case .github: .endpoints(try ProviderPreset.gitHub())
        }
    }

    /// GitHub has no OpenID Connect for users and no revocation (RFC 7009). The subject comes from its API.
    private static func gitHub() throws(OAuthError) -> ProviderMetadata {
        var metadata = try ProviderMetadata(
            authorizationEndpoint: "https://github.com/login/oauth/authorize",
            tokenEndpoint: "https://github.com/login/oauth/access_token",
            userinfoEndpoint: "https://api.github.com/user",
            deviceAuthorizationEndpoint: "https://github.com/login/device/code")
        metadata.userinfoDialect = .gitHub
        return metadata
    }

    /// Google and GitHub issue a secret to every client, the others only to confidential ones. All accept it in the
    /// form.
    public func clientAuthentication(hasSecret: Bool) -> ClientAuthentication {
        hasSecret ? .clientSecretPost : .none
    }

    /// Parameters that are added to authorization requests unless the configuration sets them.
    public var authorizationParameters: [(String, String)] {
        switch self {
        // Google has this parameter in place of the scope `offline_access`.
        case .google: [("access_type", "offline")]
        case .microsoft, .github, .gitlab: []
        }
    }

    /// True for a preset whose page lets the user choose an account with `prompt=select_account`. Their metadata do not
    /// say so.
    public static func hasAccountChooser(_ name: String) -> Bool { ["github", "google", "microsoft"].contains(name) }

    /// A redirect URI other than the usual loopback address. Microsoft ignores the port of `http://localhost` only, not
    /// that of an IP address.
    public var redirectURI: String? {
        switch self {
        case .microsoft: "http://localhost:{port}"
        case .google, .github, .gitlab: nil
        }
    }

    /// The directory of personal Microsoft accounts, whose issuer the metadata of the alias `consumers` contain.
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
