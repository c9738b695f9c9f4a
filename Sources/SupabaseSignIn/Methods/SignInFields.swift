public import BrokerCore
public import Secrets
public import StrictJSON
internal import SupabaseAuth

/// What a sign-in at a Supabase project takes beside its method; as somebody typed it, unchecked.
public struct SupabaseSignInFields: SignInDetails, Equatable {
    /// The provider's name, for a browser and for an ID token.
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
    /// Another account, whose ID token it is.
    public var fromAccount: String?
    /// What Apple posted beside its code, once: the user's name.
    public var appleUser: JSONObject?
    /// The raw one: the ID token has its SHA-256.
    public var nonce: Secret?
    public var accessToken: Secret?
    public var refreshToken: Secret?
    public var domain: String?
    public var providerID: String?
    /// False: an unknown address is no reason to make a user.
    public var createsUser = true
    /// False keeps the session out of the vault's files: it ends with the daemon.
    public var isPersistent = true
    /// The upstream provider's token is kept, to be handed out.
    public var keepsProviderToken = false
    /// What a change of the user asks for, which is no sign-in but a flow like one.
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
    /// What only sign-ins at a Supabase project have.
    public var project: SupabaseSignInFields? {
        get { details as? SupabaseSignInFields }
        set { details = newValue }
    }

    /// The request with what this kind of provider finds in it.
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
        case .anonymous, .session, .passkey: return method.rawValue
        default: break
        }
        if let provider = fields.oauthProvider { return provider.lowercased() }
        if fields.email != nil { return "email" }
        return fields.phone == nil ? rules.oauthProvider ?? method.rawValue : "phone"
    }
}
