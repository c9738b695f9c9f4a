public import BrokerCore
public import Secrets
public import StrictJSON
internal import SupabaseAuth

/// The fields of a sign-in at a Supabase project, unchecked.
public struct SupabaseSignInFields: SignInDetails, Equatable {
    /// The provider's name, for the methods `browser`, `link` and `id_token`.
    public var oauthProvider: String?
    public var email: String?
    public var phone: String?
    public var password: Secret?
    /// Written to a new user's metadata.
    public var data: JSONObject?
    /// `sms` or `whatsapp`.
    public var channel: String?
    public var captcha: Secret?
    public var idToken: Secret?
    /// Another account whose ID token is used.
    public var fromAccount: String?
    /// The `user` value that Apple sends once with the first authorization response: the user's name.
    public var appleUser: JSONObject?
    /// The raw nonce. The ID token has its SHA-256.
    public var nonce: Secret?
    public var accessToken: Secret?
    public var refreshToken: Secret?
    public var domain: String?
    public var providerID: String?
    /// False: no user is created for an unknown address.
    public var createsUser = true
    /// False: the session is not stored in the vault's files. It ends when the daemon stops.
    public var isPersistent = true
    /// True: the upstream provider's token is stored, and callers may request it.
    public var keepsProviderToken = false
    /// The requested change of the user, which is confirmed by a flow.
    var changes: UserChanges?

    public init() {}

    public var withoutSecrets: any SignInDetails {
        var fields = self
        fields.password = nil
        fields.captcha = nil
        fields.idToken = nil
        fields.accessToken = nil
        fields.refreshToken = nil
        fields.changes = changes?.contacts
        return fields
    }
}

extension SignInRequest {
    /// The fields that only sign-ins at a Supabase project have.
    public var project: SupabaseSignInFields? {
        get { details as? SupabaseSignInFields }
        set { details = newValue }
    }

    /// The request with the values that are derived for this kind of provider.
    func read(_ method: SupabaseMethod, _ rules: SupabaseAccount) -> SignInRequest {
        var request = self
        var fields = project ?? SupabaseSignInFields()
        if method == .browser { fields.oauthProvider = fields.oauthProvider ?? rules.oauthProvider }
        request.project = fields
        request.purpose = method.purpose
        request.startsAtOnce = method.startsAtOnce || method == .link && fields.idToken != nil
        request.endsElsewhere = method.endsElsewhere
        request.way = SignInRequest.way(method, fields, rules)
        return request
    }

    private static func way(
        _ method: SupabaseMethod, _ fields: SupabaseSignInFields, _ rules: SupabaseAccount
    ) -> String {
        switch method {
        case .anonymous, .session, .passkey, .page: return method.rawValue
        default: break
        }
        if let provider = fields.oauthProvider { return provider.lowercased() }
        if fields.email != nil { return "email" }
        return fields.phone == nil ? rules.oauthProvider ?? method.rawValue : "phone"
    }
}
