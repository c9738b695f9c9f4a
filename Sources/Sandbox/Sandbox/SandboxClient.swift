public import Cryptography
public import RingbackBase

/// A client the sandbox knows, and where its authorization responses may go.
/// Redirect URIs are compared byte for byte (RFC 9700 section 2.1), with the one exception of RFC 8252 section 7.3:
/// the port of a loopback IP literal, which a native app learns only when it starts to listen.
public struct SandboxClient: Sendable {
    /// How a client authenticates at the token and revocation endpoints (OpenID Connect Core section 9).
    public enum Authentication: String, Sendable, CaseIterable, SettingValue {
        case none
        case basic = "client_secret_basic"
        case post = "client_secret_post"
        case privateKey = "private_key_jwt"
    }

    /// What is accepted on loopback besides the registered URIs.
    public enum LoopbackRule: String, Sendable, CaseIterable, SettingValue {
        /// Any `http` URI on loopback, whatever its port and path.
        case any
        /// A registered `http` URI of a loopback IP literal, on any port.
        case anyPort = "any_port"
        /// Nothing: some servers compare the port too.
        case exact
    }

    public let id: String
    /// Nil for a public client.
    public let secret: Secret?
    public var redirectURIs: [String]
    public var loopback: LoopbackRule
    public var authentications: [Authentication]
    /// The public keys of a client with `private_key_jwt`.
    public var keys: [PublicKey]

    public init(
        id: String, secret: Secret? = nil, redirectURIs: [String] = [], loopback: LoopbackRule = .any,
        authentications: [Authentication]? = nil, keys: [PublicKey] = []
    ) {
        self.id = id
        self.secret = secret
        self.redirectURIs = redirectURIs
        self.loopback = loopback
        let usual: [Authentication] = keys.isEmpty ? [.none] : [.privateKey]
        self.authentications = authentications ?? (secret == nil ? usual : [.basic, .post])
        self.keys = keys
    }

    /// The public client that always exists.
    public static let demo = SandboxClient(id: "ringback-demo")

    /// True if an authorization response may be sent to the URI.
    public func accepts(redirectURI text: String) -> Bool {
        guard let url = try? WebURL(parsing: text), url.fragment == nil else { return false }
        if redirectURIs.contains(text) { return true }
        guard url.scheme == "http", url.isLoopback else { return false }
        switch loopback {
        case .any: return true
        case .anyPort: return redirectURIs.contains { SandboxClient.differOnlyInPort($0, url) }
        case .exact: return false
        }
    }

    private static func differOnlyInPort(_ registered: String, _ url: WebURL) -> Bool {
        guard let registered = try? WebURL(parsing: registered), registered.scheme == "http", registered.isLoopback,
            registered.host != "localhost"
        else { return false }
        return registered.host == url.host && registered.path == url.path && registered.query == url.query
    }
}
