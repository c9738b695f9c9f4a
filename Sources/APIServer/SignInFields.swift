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

    /// The fields that each method accepts.
    static let fieldsOfMethods: [String: Set<String>] = [
        "browser": ["oauth_provider", "scopes", "params", "persist", "provider_token", "callback_port"],
        "password": ["email", "phone", "password", "captcha_token", "persist"],
        "sign_up": [
            "email", "phone", "password", "password_confirmation", "data", "channel", "captcha_token", "persist",
        ],
        "otp": ["email", "phone", "data", "channel", "captcha_token", "persist", "create_user"],
        "magic_link": ["email", "data", "captcha_token", "persist", "create_user"],
        "id_token": [
            "oauth_provider", "id_token", "nonce", "access_token", "from_account", "user", "data", "captcha_token",
            "persist",
        ],
        "passkey": ["captcha_token", "persist"],
        "anonymous": ["data", "captcha_token", "persist"],
        "sso": ["domain", "provider_id", "captcha_token", "persist", "provider_token", "callback_port"],
        "session": ["access_token", "refresh_token", "persist"],
        // It has an endpoint of its own.
        "link": ["oauth_provider", "scopes", "params", "id_token", "nonce", "access_token"],
    ]

    static let allProjectFields = fieldsOfMethods.values.reduce(into: Set<String>()) { $0.formUnion($1) }

    /// Rejects fields that do not belong to the method. `isProject`: the account is at a Supabase project.
    func refuseStrangers(to method: String, isProject: Bool) throws(Problem) {
        let usual: Set = method == "device" ? ["scopes", "params"] : ["scopes", "params", "callback_port"]
        let allowed = isProject ? Call.fieldsOfMethods[method] ?? [] : usual
        for name in Call.allProjectFields.sorted() where has(name) && !allowed.contains(name) {
            throw invalid(name, "a sign-in by \(method) has no such field")
        }
    }

    /// A field that the user has typed.
    func field(_ name: String) throws(FieldError) -> String? {
        do throws(Problem) {
            return try text(name)
        } catch {
            throw FieldError(field: name, reason: "must be a string")
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
