public import BrokerCore
public import RingbackBase
internal import SupabaseAuth

/// The sign-in methods of Supabase projects, and the other operations of users that need a flow.
public enum SupabaseMethod: String, Sendable, CaseIterable {
    case browser
    case password
    case signUp = "sign_up"
    case otp
    case magicLink = "magic_link"
    case idToken = "id_token"
    case passkey
    case anonymous
    case sso
    /// On a page of our own, where the user chooses one of the other methods.
    case page
    /// With the tokens of a session that another program has made.
    case session
    /// With a recovery mail, for a user who forgot the password.
    case recovery
    /// Links one more identity to the signed-in user.
    case link
    /// Changes the signed-in user.
    case userUpdate = "update_user"

    /// The methods that begin with a sign-in. The others have endpoints of their own.
    public static let ofSignIn = allCases.filter { method in
        switch method {
        case .recovery, .link, .userUpdate: false
        default: true
        }
    }

    /// Nil if projects have no such method.
    public init?(_ method: SignInMethod) { self.init(rawValue: method.rawValue) }

    public var method: SignInMethod { SignInMethod(rawValue: rawValue) }

    var purpose: SignInRequest.Purpose {
        switch self {
        case .userUpdate: .change
        case .link: .link
        default: .signIn
        }
    }

    /// See ``SignInRequest/startsAtOnce``.
    var startsAtOnce: Bool {
        switch self {
        case .password, .signUp, .idToken, .anonymous, .session: true
        case .browser, .otp, .magicLink, .passkey, .sso, .page, .recovery, .link, .userUpdate: false
        }
    }

    /// See ``SignInRequest/endsElsewhere``.
    var endsElsewhere: Bool {
        switch self {
        case .browser, .sso, .magicLink, .page: true
        case .password, .signUp, .otp, .idToken, .passkey, .anonymous, .session, .recovery, .link, .userUpdate: false
        }
    }
}

extension SignInRequest {
    public init(_ method: SupabaseMethod) { self.init(method: method.method) }

    /// The method; nil if projects have no such method.
    var projectMethod: SupabaseMethod? { SupabaseMethod(method) }
}

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
