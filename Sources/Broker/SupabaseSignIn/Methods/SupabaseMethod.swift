public import BrokerCore

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
