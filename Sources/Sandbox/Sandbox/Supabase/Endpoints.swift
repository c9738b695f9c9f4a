/// The names of a Supabase project's paths in switches, counters and the log: one for each group.
extension Endpoint {
    static let supabaseRoot = "/auth/v1/"
    static let restRoot = "/rest/v1/"

    var isSupabase: Bool { rawValue.hasPrefix("supabase_") }

    /// The endpoint at a path below a project's URL; nil for any other path.
    init?(supabasePath path: String) {
        if path.hasPrefix(Endpoint.restRoot) {
            self = .supabaseREST
            return
        }
        guard path.hasPrefix(Endpoint.supabaseRoot) else { return nil }
        let below = path.dropFirst(Endpoint.supabaseRoot.utf8.count)
        if let exact = Endpoint.exact[String(below)] {
            self = exact
            return
        }
        switch below.split(separator: "/", omittingEmptySubsequences: false).first {
        case "factors": self = .supabaseFactors
        case "passkeys": self = .supabasePasskeys
        case "user": self = .supabaseIdentities
        default: self = .supabaseOther
        }
    }

    private static let exact: [String: Endpoint] = [
        "authorize": .supabaseAuthorize, "callback": .supabaseCallback, "sso/saml/acs": .supabaseCallback,
        "token": .supabaseToken, "signup": .supabaseSignUp, "otp": .supabaseOTP, "magiclink": .supabaseOTP,
        "recover": .supabaseRecover, "resend": .supabaseResend, "verify": .supabaseVerify, "user": .supabaseUser,
        "reauthenticate": .supabaseReauthenticate, "logout": .supabaseLogout, "sso": .supabaseSSO,
        "settings": .supabaseSettings, "health": .supabaseHealth, ".well-known/jwks.json": .supabaseJWKS,
    ]
}
