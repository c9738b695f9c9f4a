public import RingbackBase

/// How a code is sent to a phone.
public enum MessageChannel: String, Sendable {
    case sms
    case whatsapp

    /// Throws for `channel`.
    public init(parsing word: String) throws(FieldError) {
        guard let channel = MessageChannel(rawValue: word) else {
            throw FieldError(field: "channel", reason: "sms or whatsapp")
        }
        self = channel
    }
}

/// Where the link in a mail leads, and how its code is redeemed. For a typed code neither is needed.
public struct MailLink: Sendable, Equatable {
    /// ``SupabaseRedirect/url``; nil for the project's Site URL.
    public var redirectTo: String?
    /// The PKCE challenge of the flow, which usually expires after five minutes. Nil if the code is typed or the link's
    /// hash is posted.
    public var challenge: String?

    public init(redirectTo: String? = nil, challenge: String? = nil) {
        self.redirectTo = redirectTo
        self.challenge = challenge
    }

    public static let none = MailLink()
}

/// The data of a new user.
public struct NewUser: Sendable, Equatable {
    public var contact: Contact
    public var password: Secret
    /// `user_metadata`.
    public var data: JSONObject?
    /// For a phone number; nil for the server's default, SMS.
    public var channel: MessageChannel?

    public init(contact: Contact, password: Secret, data: JSONObject? = nil, channel: MessageChannel? = nil) {
        self.contact = contact
        self.password = password
        self.data = data
        self.channel = channel
    }
}

extension SupabaseRequest where Response == SignUpResponse {
    /// For a phone number `link` is ignored: the server rejects a challenge there. Throws for `password` and `channel`.
    public static func signUp(
        _ user: NewUser, link: MailLink = .none, captcha: Secret? = nil
    ) throws(FieldError) -> Self {
        try PasswordRule.check(user.password, isNew: true)
        let channel = try user.contact.accepting(user.channel)
        return .mailing(
            "/signup", user.contact, link, captcha,
            ["password": .secret(user.password), "data": .optional(user.data), "channel": channel])
    }
}

/// Requests that send messages.
extension SupabaseRequest where Response == EmptyResponse {
    /// A mail also has a link. If `createsUser` is false, an unknown address gives `otp_disabled`. Throws for
    /// `channel`.
    public static func sendCode(
        to contact: Contact, createsUser: Bool = true, data: JSONObject? = nil, channel: MessageChannel? = nil,
        link: MailLink = .none, captcha: Secret? = nil
    ) throws(FieldError) -> Self {
        let channel = try contact.accepting(channel)
        return .mailing(
            "/otp", contact, link, captcha,
            ["create_user": .bool(createsUser), "data": .optional(data), "channel": channel])
    }

    /// For a forgotten password. The server's response is the same for an unknown address.
    public static func sendRecovery(to address: EmailAddress, link: MailLink = .none, captcha: Secret? = nil) -> Self {
        .mailing("/recover", .email(address), link, captcha, [:])
    }

    /// `contact` is the user's current one, also for a change. Throws for `type` if the kind does not fit it.
    public static func resend(
        _ kind: Resending, to contact: Contact, link: MailLink = .none, captcha: Secret? = nil
    ) throws(FieldError) -> Self {
        switch (kind, contact) {
        case (.signUp, .email), (.emailChange, .email), (.sms, .phone), (.phoneChange, .phone): break
        default: throw FieldError(field: "type", reason: "\(kind.rawValue) is not sent to this kind of address")
        }
        return .mailing("/resend", contact, link, captcha, ["type": .string(kind.rawValue)])
    }
}

/// The kind of message to send again.
public enum Resending: String, Sendable {
    case signUp = "signup"
    case emailChange = "email_change"
    case sms
    case phoneChange = "phone_change"
}

extension SupabaseRequest {
    fileprivate static func mailing(
        _ path: String, _ contact: Contact, _ link: MailLink, _ captcha: Secret?,
        _ members: KeyValuePairs<String, JSON?>
    ) -> Self {
        var body = JSONObject(members)
        body.set(contact)
        body.set(captcha: captcha)
        guard case .email = contact else { return Self("POST", path, body: body) }
        body.set(challenge: link.challenge)
        return Self("POST", path, query: query(redirectTo: link.redirectTo), body: body)
    }
}

extension Contact {
    /// The server rejects a channel together with an e-mail address. Throws for `channel`.
    fileprivate func accepting(_ channel: MessageChannel?) throws(FieldError) -> JSON? {
        guard let channel else { return nil }
        guard case .phone = self else { throw FieldError(field: "channel", reason: "only for a phone number") }
        return .string(channel.rawValue)
    }
}

/// A sign-in through the browser with one of the project's providers.
public struct BrowserSignIn: Sendable {
    /// `google`, `apple`, `custom:acme` and so on; the letter case is ignored.
    public var provider: String
    /// Added to the provider's default scopes; for a `custom:` provider they replace them.
    public var scopes: [String]
    /// Where the browser comes back to: ``SupabaseRedirect/url``.
    public var redirectTo: String
    /// Of the flow's ``PKCE``.
    public var challenge: String
    /// Additional parameters for the provider: `prompt`, `login_hint`, `access_type` ...
    public var params: [(String, String)]

    public init(
        provider: String, scopes: [String] = [], redirectTo: String, challenge: String,
        params: [(String, String)] = []
    ) {
        self.provider = provider
        self.scopes = scopes
        self.redirectTo = redirectTo
        self.challenge = challenge
        self.params = params
    }

    /// Our own parameters come first, because the server uses the first of two with the same name. Throws for
    /// `oauth_provider`.
    fileprivate func query() throws(FieldError) -> [(String, String)] {
        var query = [("provider", try ProviderName.checked(provider))]
        if !scopes.isEmpty { query.append(("scopes", scopes.joined(separator: " "))) }
        query += [("redirect_to", redirectTo), ("code_challenge", challenge)]
        query.append(("code_challenge_method", JSONObject.challengeMethod))
        return query + params
    }
}

extension SupabaseRequest where Response == ProviderRedirect {
    /// The URL that the browser is to open, requested by the daemon itself: it can report a disabled provider as an
    /// error, where a browser would show a page of JSON. Throws for `oauth_provider`.
    public static func authorization(_ signIn: BrowserSignIn) throws(FieldError) -> Self {
        Self("GET", "/authorize", query: try signIn.query())
    }
}

/// Selects the identity provider for single sign-on.
public enum Organization: Sendable, Equatable {
    /// By the domain of the user's e-mail address.
    case domain(String)
    /// By the UUID of the provider in the project.
    case providerID(String)

    /// Throws for `domain` and `provider_id`.
    fileprivate var member: JSONObject.Member {
        get throws(FieldError) {
            switch self {
            case .domain(let domain):
                let text = domain.lowercased()
                // The rules for the domain of an e-mail address apply.
                guard (try? EmailAddress(parsing: "a@\(text)")) != nil else {
                    throw FieldError(field: "domain", reason: "not a domain such as example.org")
                }
                return .init("domain", .string(text))
            case .providerID(let id): return .init("provider_id", .string(try PlainText.uuid(id, field: "provider_id")))
            }
        }
    }
}

extension SupabaseRequest where Response == URLResponse {
    /// The URL at which the user of the access token adds an identity. The code that comes back belongs to a new
    /// session of the same user. Throws for `oauth_provider`.
    public static func identityLink(_ signIn: BrowserSignIn) throws(FieldError) -> Self {
        Self("GET", "/user/identities/authorize", query: try signIn.query() + [("skip_http_redirect", "true")])
    }

    /// The URL of an organization's identity provider. The sign-in must be finished within 2 minutes. Throws for
    /// `domain` and `provider_id`.
    public static func singleSignOn(
        _ organization: Organization, redirectTo: String, challenge: String, captcha: Secret? = nil
    ) throws(FieldError) -> Self {
        var body = JSONObject([try organization.member])
        body["redirect_to"] = .string(redirectTo)
        // Without this the server responds with a redirect.
        body["skip_http_redirect"] = true
        body.set(challenge: challenge)
        body.set(captcha: captcha)
        return Self("POST", "/sso", body: body)
    }
}

/// Requests that give a session.
extension SupabaseRequest where Response == SessionResponse {
    public static func signUpAnonymously(data: JSONObject? = nil, captcha: Secret? = nil) -> Self {
        var body = JSONObject(["data": .optional(data)])
        body.set(captcha: captcha)
        return Self("POST", "/signup", body: body)
    }

    /// Throws for `password`.
    public static func password(
        _ contact: Contact, _ password: Secret, captcha: Secret? = nil
    ) throws(FieldError) -> Self {
        try PasswordRule.check(password, isNew: false)
        var body = JSONObject(["password": .secret(password)])
        body.set(contact)
        body.set(captcha: captcha)
        return grant("password", body)
    }

    /// A wrong verifier does not use up the code.
    public static func code(_ code: Secret, verifier: Secret) -> Self {
        grant("pkce", JSONObject(["auth_code": .secret(code), "code_verifier": .secret(verifier)]))
    }

    /// A partial response is kept, since it may have the only valid token, see ``SessionResponse/refreshToken``.
    public static func refresh(_ token: Secret) -> Self {
        grant("refresh_token", JSONObject(["refresh_token": .secret(token)]), keepsPartialBody: true)
    }

    /// Exchanges an ID token of another provider (`apple`, `google`, `azure`, `custom:…`). It must contain the SHA-256
    /// of the raw `nonce` in lower-case hexadecimal; either both have a nonce or neither. `accessToken` is the
    /// provider's, which the server compares with `at_hash`. With `isLink`, the identity is added to the user of the
    /// access token. Throws for `oauth_provider`.
    public static func idToken(
        _ idToken: Secret, of provider: String, accessToken: Secret? = nil, nonce: Secret? = nil,
        captcha: Secret? = nil, isLink: Bool = false
    ) throws(FieldError) -> Self {
        var body = JSONObject([
            "provider": .string(try ProviderName.checked(provider)), "id_token": .secret(idToken),
            "access_token": accessToken.map { .secret($0) }, "nonce": nonce.map { .secret($0) },
        ])
        if isLink { body["link_identity"] = true }
        body.set(captcha: captcha)
        return grant("id_token", body, keepsPartialBody: isLink)
    }

    private static func grant(_ type: String, _ body: JSONObject, keepsPartialBody: Bool = false) -> Self {
        Self("POST", "/token", query: [("grant_type", type)], body: body, keepsPartialBody: keepsPartialBody)
    }

    /// Redeems a typed code. `contact` is where it was sent: for a change, the new address or number. Throws for `type`
    /// if it does not fit the contact.
    public static func verify(
        _ code: OneTimeCode, for purpose: MessagePurpose, of contact: Contact
    ) throws(FieldError) -> Self {
        switch contact {
        case .email where !purpose.isForPhone, .phone where purpose.isForPhone: break
        default:
            throw FieldError(field: "type", reason: "\(purpose.rawValue) does not belong to this kind of address")
        }
        var body = JSONObject(["type": .string(purpose.rawValue), "token": .secret(code.digits)])
        body.set(contact)
        return Self("POST", "/verify", body: body)
    }

    /// Redeems the hash from the link of a mail, also one for PKCE (`pkce_…`). Throws for `type` and `token_hash`.
    public static func verify(tokenHash: Secret, for purpose: MessagePurpose) throws(FieldError) -> Self {
        guard !purpose.isForPhone else {
            throw FieldError(field: "type", reason: "\(purpose.rawValue) has no token_hash")
        }
        guard tokenHash.count <= 512, PlainText.isToken(tokenHash.revealed()) else {
            throw FieldError(field: "token_hash", reason: "not the hash of a link")
        }
        let body = JSONObject(["type": .string(purpose.rawValue), "token_hash": .secret(tokenHash)])
        return Self("POST", "/verify", body: body)
    }
}

/// What a code or a hash was sent for.
public enum MessagePurpose: String, Sendable {
    case signUp = "signup"
    case invite
    case recovery
    case magicLink = "magiclink"
    case emailChange = "email_change"
    /// The code of a sign-up or a magic link.
    case email
    case sms
    case phoneChange = "phone_change"
    fileprivate var isForPhone: Bool { self == .sms || self == .phoneChange }
}

/// The project's name of a provider.
public enum ProviderName {
    /// `google`, `linkedin_oidc`, `custom:acme`. Throws for `oauth_provider`.
    @discardableResult
    public static func checked(_ name: String) throws(FieldError) -> String {
        guard (1...100).contains(name.utf8.count), name.utf8.allSatisfy(PlainText.isNameByte) else {
            throw FieldError(field: "oauth_provider", reason: "not a provider's name")
        }
        return name
    }
}

extension JSONObject {
    /// Members with nil are left out.
    init(_ members: KeyValuePairs<String, JSON?>) {
        self.init(members.compactMap { name, value in value.map { Member(name, $0) } })
    }

    mutating func set(_ contact: Contact) {
        switch contact {
        case .email(let address): self["email"] = .string(address.text)
        case .phone(let number): self["phone"] = .string(number.digits)
        }
    }

    mutating func set(captcha: Secret?) {
        guard let captcha else { return }
        self["gotrue_meta_security"] = ["captcha_token": .secret(captcha)]
    }

    mutating func set(challenge: String?) {
        guard let challenge else { return }
        self["code_challenge"] = .string(challenge)
        self["code_challenge_method"] = .string(JSONObject.challengeMethod)
    }

    /// Always S256, which the server writes in lower case.
    fileprivate static let challengeMethod = "s256"
}

extension JSON {
    /// The body as a whole is a secret.
    static func secret(_ secret: Secret) -> JSON { .string(secret.revealed()) }
    static func optional(_ text: String?) -> JSON? { text.map { .string($0) } }
    static func optional(_ object: JSONObject?) -> JSON? { object.map { .object($0) } }
}
