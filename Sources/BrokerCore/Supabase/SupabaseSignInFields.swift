public import Secrets
public import StrictJSON
internal import SupabaseAuth

/// What a sign-in at a Supabase project takes beside its method; as somebody typed it, unchecked.
public struct SupabaseSignInFields: Sendable, Equatable {
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
    /// What Apple posted beside its code, once: the person's name.
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
}

extension SignInRequest {
    /// What a funnel calls it: whose page it is, or what the person is reached by.
    func way(of account: Account) -> String {
        guard let project, !["anonymous", "session", "passkey"].contains(method) else {
            return account.project == nil ? account.provider : method
        }
        if let provider = project.oauthProvider { return provider.lowercased() }
        if project.email != nil { return "email" }
        return project.phone == nil ? account.project?.oauthProvider ?? method : "phone"
    }

    /// Done at once, without a flow, unless something has to be confirmed.
    var isDirect: Bool { ["password", "sign_up", "id_token", "anonymous", "session"].contains(method) }

    /// It is on its way when it is asked for; a flow may follow.
    var startsAtOnce: Bool { isDirect || method == "link" && project?.idToken != nil }

    /// The same without what was needed once: a pending flow keeps no password, and is found without it.
    var withoutSecrets: SignInRequest {
        var request = self
        request.project?.password = nil
        request.project?.captcha = nil
        request.project?.idToken = nil
        request.project?.accessToken = nil
        request.project?.refreshToken = nil
        let contacts = request.project?.changes?.contacts
        request.project?.changes = contacts
        return request
    }
}
