/// The endpoints of an issuer: their paths, and their names in switches, counters and the log.
enum Endpoint: String, CaseIterable, Sendable {
    case discovery, jwks, authorize
    /// Where the page of `authorize` sends its form.
    case signIn = "sign_in"
    case token, userinfo, revocation
    /// RFC 9126.
    case pushedAuthorization = "par"
    case endSession = "end_session"
    /// RFC 8628.
    case deviceAuthorization = "device_authorization"
    /// The page where its code is entered.
    case device
    /// RFC 7591.
    case registration
    /// RFC 7592.
    case clientConfiguration = "client_configuration"
    // A Supabase project's, a group of paths each (Supabase/Endpoints.swift).
    case supabaseAuthorize = "supabase_authorize"
    case supabaseCallback = "supabase_callback"
    case supabaseToken = "supabase_token"
    case supabaseSignUp = "supabase_signup"
    case supabaseOTP = "supabase_otp"
    case supabaseRecover = "supabase_recover"
    case supabaseResend = "supabase_resend"
    case supabaseVerify = "supabase_verify"
    case supabaseUser = "supabase_user"
    case supabaseReauthenticate = "supabase_reauthenticate"
    case supabaseLogout = "supabase_logout"
    case supabaseIdentities = "supabase_identities"
    case supabaseFactors = "supabase_factors"
    case supabasePasskeys = "supabase_passkeys"
    case supabaseSSO = "supabase_sso"
    case supabaseSettings = "supabase_settings"
    case supabaseHealth = "supabase_health"
    case supabaseJWKS = "supabase_jwks"
    case supabaseOther = "supabase_other"
    case supabaseREST = "supabase_rest"

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
        case .deviceAuthorization: "/device_authorization"
        case .device: "/device"
        case .endSession: "/logout"
        case .registration: "/register"
        case .clientConfiguration: "/register/client"
        case .supabaseREST: Endpoint.restRoot
        default: Endpoint.supabaseRoot
        }
    }

    var methods: [String] {
        switch self {
        case .discovery, .jwks: ["GET"]
        case .authorize, .userinfo, .endSession, .device: ["GET", "POST"]
        case .signIn, .token, .revocation, .pushedAuthorization, .deviceAuthorization, .registration: ["POST"]
        case .clientConfiguration: ["GET", "PUT", "DELETE"]
        default: []
        }
    }

    /// The endpoint at a path below the issuer's.
    init?(path: String) {
        let isOurs = { (endpoint: Endpoint) in !endpoint.isSupabase && endpoint.path == path }
        guard let found = Endpoint(supabasePath: path) ?? Endpoint.allCases.first(where: isOurs) else { return nil }
        self = found
    }

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
