internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth
internal import SupabaseSignIn

/// The body of a sign-in, field by field. A field that belongs to another method is rejected: if it were ignored, the
/// caller would believe that it has an effect.
extension Call {
    /// The fields that only sign-ins at a Supabase project have.
    func projectSignIn() throws(Problem) -> SupabaseSignInFields {
        var fields = SupabaseSignInFields()
        fields.oauthProvider = try text("oauth_provider")
        fields.email = try text("email")
        fields.phone = try text("phone")
        fields.password = try newPassword()
        fields.data = try object("data")
        fields.channel = try text("channel")
        fields.captcha = try secret("captcha_token")
        fields.idToken = try secret("id_token")
        fields.fromAccount = try text("from_account")
        fields.appleUser = try object("user")
        fields.nonce = try secret("nonce")
        fields.accessToken = try secret("access_token")
        fields.refreshToken = try secret("refresh_token")
        fields.domain = try text("domain")
        fields.providerID = try text("provider_id")
        if has("persist") { fields.isPersistent = try truth("persist") }
        if has("create_user") { fields.createsUser = try truth("create_user") }
        fields.keepsProviderToken = try truth("provider_token")
        return fields
    }

    /// The fields that the methods accept, all together.
    static let allProjectFields = SupabaseMethod.allCases.reduce(into: Set<String>()) { $0.formUnion($1.fields) }

    /// Refuses fields that do not belong to the method.
    func refuseStrangers(to method: SupabaseMethod) throws(Problem) {
        try refuseStrangers(to: method.method, taking: method.fields)
    }

    /// Rejects fields that do not belong to the method.
    func refuseStrangers(to method: OAuthMethod) throws(Problem) {
        try refuseStrangers(to: method.method, taking: method.fields)
    }

    private func refuseStrangers(to method: SignInMethod, taking fields: Set<String>) throws(Problem) {
        for name in Call.allProjectFields.sorted() where has(name) && !fields.contains(name) {
            throw invalid(name, "a sign-in by \(method) has no such field")
        }
    }

    /// A field that the user has typed.
    func field(_ name: String) throws(FieldError) -> String? {
        do throws(Problem) {
            return try text(name)
        } catch {
            throw FieldError.notString(name)
        }
    }

    /// The scopes of a sign-in; nil for the account's own.
    func scopes() throws(Problem) -> [String]? {
        let scopes = try text("scopes")?.split(separator: " ").map(String.init)
        if scopes?.isEmpty == true {
            throw invalid("scopes", "must not be empty; leave it out for the account's own scopes")
        }
        return scopes
    }

    /// Extra parameters of an authorization request.
    func authorizationParameters() throws(Problem) -> [(String, String)] {
        let parameters = try texts("params")
        if let reserved = parameters.first(where: { SignInRequest.reservedParameters.contains($0.0) })?.0 {
            throw invalid("params.\(reserved)", "Ringback sets this parameter itself")
        }
        return parameters
    }
}

extension OAuthMethod {
    fileprivate var fields: Set<String> {
        switch self {
        case .browser: ["scopes", "params", "callback_port"]
        case .device: ["scopes", "params"]
        case .session: ["refresh_token"]
        }
    }
}

extension SupabaseMethod {
    /// Those of the fields above that the method takes.
    var fields: Set<String> {
        switch self {
        case .browser: ["oauth_provider", "scopes", "params", "persist", "provider_token", "callback_port"]
        case .password: ["email", "phone", "password", "captcha_token", "persist"]
        case .signUp:
            ["email", "phone", "password", "password_confirmation", "data", "channel", "captcha_token", "persist"]
        case .otp: ["email", "phone", "data", "channel", "captcha_token", "persist", "create_user"]
        case .magicLink: ["email", "data", "captcha_token", "persist", "create_user"]
        case .idToken:
            [
                "oauth_provider", "id_token", "nonce", "access_token", "from_account", "user", "data",
                "captcha_token", "persist",
            ]
        case .passkey: ["captcha_token", "persist"]
        case .anonymous: ["data", "captcha_token", "persist"]
        case .sso: ["domain", "provider_id", "captcha_token", "persist", "provider_token", "callback_port"]
        case .page: ["persist"]
        case .session: ["access_token", "refresh_token", "persist"]
        case .link: ["oauth_provider", "scopes", "params", "id_token", "nonce", "access_token"]
        // Their endpoints read their own fields.
        case .recovery, .userUpdate: []
        }
    }
}
