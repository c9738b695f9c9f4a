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
    case link
    case userUpdate = "update_user"

    /// The methods that begin with a sign-in. The others have endpoints of their own.
    public static let ofSignIn = allCases.filter { ![.recovery, .link, .userUpdate].contains($0) }

    public init?(_ method: SignInMethod) { self.init(rawValue: method.rawValue) }

    public var method: SignInMethod { SignInMethod(rawValue: rawValue) }

    var purpose: SignInRequest.Purpose {
        switch self {
        case .userUpdate: .change
        case .link: .link
        default: .signIn
        }
    }

    var startsAtOnce: Bool {
        switch self {
        case .password, .signUp, .idToken, .anonymous, .session: true
        case .browser, .otp, .magicLink, .passkey, .sso, .page, .recovery, .link, .userUpdate: false
        }
    }

    var endsElsewhere: Bool {
        switch self {
        case .browser, .sso, .magicLink, .page: true
        case .password, .signUp, .otp, .idToken, .passkey, .anonymous, .session, .recovery, .link, .userUpdate: false
        }
    }
}

extension SignInRequest {
    public init(_ method: SupabaseMethod) { self.init(method: method.method) }

    var projectMethod: SupabaseMethod? { SupabaseMethod(method) }
}

/// The fields of a sign-in at a Supabase project, unchecked.
public struct SupabaseSignInFields: SignInDetails, Equatable {
    /// The provider's name, for the methods `browser`, `link` and `id_token`.
    public var oauthProvider: String?
    public var email: String?
    public var phone: String?
    public var password: Secret?
    public var data: JSONObject?
    /// `sms` or `whatsapp`.
    public var channel: String?
    public var captcha: Secret?
    public var idToken: Secret?
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
    public var project: SupabaseSignInFields? {
        get { details as? SupabaseSignInFields }
        set { details = newValue }
    }

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
        if [.anonymous, .session, .passkey, .page].contains(method) { return method.rawValue }
        if let provider = fields.oauthProvider { return provider.lowercased() }
        if fields.email != nil { return "email" }
        return fields.phone == nil ? rules.oauthProvider ?? method.rawValue : "phone"
    }
}
