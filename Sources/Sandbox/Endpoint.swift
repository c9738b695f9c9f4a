/// The endpoints of an issuer: where they are, and what they are called in switches, counters and the log.
enum Endpoint: String, CaseIterable, Sendable {
    case discovery, jwks, authorize
    /// Where the page of `authorize` sends its form.
    case signIn = "sign_in"
    case token, userinfo, revocation
    /// RFC 9126.
    case pushedAuthorization = "par"
    case endSession = "end_session"

    /// Below the issuer's path.
    var path: String {
        switch self {
        case .discovery: "/.well-known/openid-configuration"
        case .jwks: "/jwks"
        case .authorize: "/authorize"
        case .signIn: "/sign-in"
        case .token: "/token"
        case .userinfo: "/userinfo"
        case .revocation: "/revoke"
        case .pushedAuthorization: "/par"
        case .endSession: "/logout"
        }
    }

    var methods: [String] {
        switch self {
        case .discovery, .jwks: ["GET"]
        case .authorize, .userinfo, .endSession: ["GET", "POST"]
        case .signIn, .token, .revocation, .pushedAuthorization: ["POST"]
        }
    }

    /// The endpoint at a path below the issuer's.
    init?(path: String) {
        guard let found = Endpoint.allCases.first(where: { $0.path == path }) else { return nil }
        self = found
    }

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
