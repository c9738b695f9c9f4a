public import RingbackBase

/// How a code is sent to a phone.
public enum MessageChannel: String, Sendable {
    case sms
    case whatsapp

    /// Throws for any other word.
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
    /// The PKCE challenge of the flow, which usually expires five minutes after the request. Nil if the code is typed
    /// or the link's hash is posted.
    public var challenge: String?

    /// Creates a link.
    public init(redirectTo: String? = nil, challenge: String? = nil) {
        self.redirectTo = redirectTo
        self.challenge = challenge
    }

    /// No link: the code is typed.
    public static let none = MailLink()
}

/// Requests that create users and send them messages.
extension SupabaseProject {
    /// The data of a new user.
    public struct NewUser: Sendable, Equatable {
        public var contact: Contact
        public var password: Secret
        /// `user_metadata`.
        public var data: JSONObject?
        /// For a phone number; nil for the server's default, SMS.
        public var channel: MessageChannel?

        /// Creates the data.
        public init(contact: Contact, password: Secret, data: JSONObject? = nil, channel: MessageChannel? = nil) {
            self.contact = contact
            self.password = password
            self.data = data
            self.channel = channel
        }
    }

    /// Creates a user; the response is a ``SignUpResponse``. For a phone number `link` is ignored, because the server
    /// rejects a challenge there. Throws for `password` and `channel`.
    public func signUp(_ user: NewUser, link: MailLink = .none, captcha: Secret? = nil) throws(FieldError)
        -> HTTPRequest
    {
        try PasswordRule.check(user.password, isNew: true)
        var body = JSONObject()
        body.set(user.contact)
        body["password"] = .secret(user.password)
        body["data"] = user.data.map { .object($0) }
        try body.set(channel: user.channel, for: user.contact)
        return mailing("/signup", user.contact, link, captcha, body)
    }

    /// Creates an anonymous user; the response is a ``SessionResponse``.
    public func signUpAnonymously(data: JSONObject? = nil, captcha: Secret? = nil) -> HTTPRequest {
        var body = JSONObject(["data": data.map { .object($0) }])
        body.set(captcha: captcha)
        return request("POST", "/signup", body: body)
    }

    /// Sends a one-time code; a mail also has a link. The response is a ``MessageResponse``. If `createsUser` is false,
    /// an unknown address gives the error `otp_disabled`. Throws for `channel`.
    public func sendCode(
        to contact: Contact, createsUser: Bool = true, data: JSONObject? = nil, channel: MessageChannel? = nil,
        link: MailLink = .none, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject()
        body.set(contact)
        body["create_user"] = .bool(createsUser)
        body["data"] = data.map { .object($0) }
        try body.set(channel: channel, for: contact)
        return mailing("/otp", contact, link, captcha, body)
    }

    /// Sends a link by mail. This is the older request; ``sendCode(to:createsUser:data:channel:link:captcha:)``
    /// replaces it.
    public func sendMagicLink(
        to address: EmailAddress, data: JSONObject? = nil, link: MailLink = .none, captcha: Secret? = nil
    ) -> HTTPRequest {
        let body = JSONObject(["email": .string(address.text), "data": data.map { .object($0) }])
        return mailing("/magiclink", .email(address), link, captcha, body)
    }

    /// Sends a mail for resetting a forgotten password. The server's response is the same for an unknown address.
    public func sendRecovery(to address: EmailAddress, link: MailLink = .none, captcha: Secret? = nil) -> HTTPRequest {
        let contact = Contact.email(address)
        return mailing("/recover", contact, link, captcha, JSONObject(["email": .string(address.text)]))
    }

    /// The kind of message to send again.
    public enum Resending: String, Sendable {
        case signUp = "signup"
        case emailChange = "email_change"
        case sms
        case phoneChange = "phone_change"
    }

    /// Sends a message again. `contact` is the user's current address or number, also for a change. Throws for `type`
    /// if the kind does not fit the contact.
    public func resend(
        _ kind: Resending, to contact: Contact, link: MailLink = .none, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        switch (kind, contact) {
        case (.signUp, .email), (.emailChange, .email), (.sms, .phone), (.phoneChange, .phone): break
        default: throw FieldError(field: "type", reason: "\(kind.rawValue) is not sent to this kind of address")
        }
        var body = JSONObject(["type": .string(kind.rawValue)])
        body.set(contact)
        return mailing("/resend", contact, link, captcha, body)
    }

    private func mailing(
        _ path: String, _ contact: Contact, _ link: MailLink, _ captcha: Secret?, _ members: JSONObject
    ) -> HTTPRequest {
        var body = members
        var query: [(String, String)] = []
        if case .email = contact {
            query = SupabaseProject.query(redirectTo: link.redirectTo)
            body.set(challenge: link.challenge)
        }
        body.set(captcha: captcha)
        return request("POST", path, query: query, body: body)
    }
}

extension JSONObject {
    /// The server rejects a channel together with an e-mail address. Throws for `channel`.
    fileprivate mutating func set(channel: MessageChannel?, for contact: Contact) throws(FieldError) {
        guard let channel else { return }
        guard case .phone = contact else { throw FieldError(field: "channel", reason: "only for a phone number") }
        self["channel"] = .string(channel.rawValue)
    }
}

/// A sign-in through the browser with one of the project's providers.
public struct BrowserSignIn: Sendable, Equatable {
    /// `google`, `apple`, `custom:acme` and so on; the letter case is ignored.
    public var provider: String
    /// Added to the provider's default scopes; for a `custom:` provider they replace them.
    public var scopes: [String]
    /// Where the browser comes back to: ``SupabaseRedirect/url``.
    public var redirectTo: String
    /// The challenge of the flow's ``PKCE``.
    public var challenge: String
    /// Additional parameters for the provider: `prompt`, `login_hint`, `access_type` ...
    public var params: [(name: String, value: String)]

    /// Creates a request.
    public init(
        provider: String, scopes: [String] = [], redirectTo: String, challenge: String,
        params: [(name: String, value: String)] = []
    ) {
        self.provider = provider
        self.scopes = scopes
        self.redirectTo = redirectTo
        self.challenge = challenge
        self.params = params
    }

    public static func == (left: BrowserSignIn, right: BrowserSignIn) -> Bool {
        left.provider == right.provider && left.scopes == right.scopes && left.redirectTo == right.redirectTo
            && left.challenge == right.challenge && left.params.elementsEqual(right.params, by: ==)
    }

    /// The query of the authorization endpoint. Our own parameters come first, because the server uses the first of two
    /// parameters with the same name. Throws for `oauth_provider`.
    func query() throws(FieldError) -> [(String, String)] {
        var query = [("provider", try SupabaseProject.checkedProvider(provider))]
        if !scopes.isEmpty { query.append(("scopes", scopes.joined(separator: " "))) }
        query.append(("redirect_to", redirectTo))
        query.append(("code_challenge", challenge))
        query.append(("code_challenge_method", SupabaseProject.challengeMethod))
        return query + params.map { ($0.name, $0.value) }
    }
}

/// Requests for sign-ins in a browser.
extension SupabaseProject {
    /// The URL to open. It is not secret: it contains only the challenge and the flow's key. Throws for
    /// `oauth_provider`.
    public func authorizationURL(_ signIn: BrowserSignIn) throws(FieldError) -> String {
        "\(authURL)/authorize?\(FormEncoding.encode(try signIn.query()))"
    }

    /// A request to the same URL that the daemon sends itself. It can then report a disabled provider as an error; a
    /// browser would show a page of JSON. See ``ProviderRedirect``. The gateway does not require the project's key
    /// here, but the request has it anyway. Throws for `oauth_provider`.
    public func authorization(_ signIn: BrowserSignIn) throws(FieldError) -> HTTPRequest {
        request("GET", "/authorize", query: try signIn.query())
    }

    /// Requests the URL at which the user of `bearer` adds an identity; the response is a ``URLResponse``. The code
    /// that comes back belongs to a new session of the same user. Throws for `oauth_provider`.
    public func identityLink(_ signIn: BrowserSignIn, bearer: Secret) throws(FieldError) -> HTTPRequest {
        let query = try signIn.query() + [("skip_http_redirect", "true")]
        return request("GET", "/user/identities/authorize", query: query, bearer: bearer)
    }

    /// Selects the identity provider for single sign-on.
    public enum Organization: Sendable, Equatable {
        /// By the domain of the user's e-mail address.
        case domain(String)
        /// By the UUID of the provider in the project.
        case providerID(String)
    }

    /// Requests the URL of an organization's identity provider; the response is a ``URLResponse``. This is the only
    /// request with `redirect_to` in the body. The sign-in must be finished within 2 minutes. Throws for `domain` and
    /// `provider_id`.
    public func singleSignOn(
        _ organization: Organization, redirectTo: String, challenge: String, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject()
        switch organization {
        case .domain(let domain):
            let text = domain.lowercased()
            // The rules for the domain of an e-mail address apply.
            guard (try? EmailAddress(parsing: "a@\(text)")) != nil else {
                throw FieldError(field: "domain", reason: "not a domain such as example.org")
            }
            body["domain"] = .string(text)
        case .providerID(let id):
            guard PlainText.isUUID(id) else { throw FieldError(field: "provider_id", reason: "not a UUID") }
            body["provider_id"] = .string(id)
        }
        body["redirect_to"] = .string(redirectTo)
        // Without this the server responds with a redirect.
        body["skip_http_redirect"] = true
        body.set(challenge: challenge)
        body.set(captcha: captcha)
        return request("POST", "/sso", body: body)
    }
}

/// Token requests, which give a session. The grant type is in the query, the other parameters are in a JSON body.
extension SupabaseProject {
    /// The password grant with an e-mail address or a phone number. Throws for `password`.
    public func passwordGrant(
        _ contact: Contact, password: Secret, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        try PasswordRule.check(password, isNew: false)
        var body = JSONObject()
        body.set(contact)
        body["password"] = .secret(password)
        body.set(captcha: captcha)
        return grant("password", body)
    }

    /// Redeems the code of a callback. A wrong verifier does not use up the code.
    public func codeGrant(code: Secret, verifier: Secret) -> HTTPRequest {
        grant(
            "pkce",
            JSONObject(["auth_code": .secret(code), "code_verifier": .secret(verifier)]))
    }

    /// The refresh request. The response may contain the only valid refresh token, so a partial one is kept, see
    /// ``SessionResponse/refreshToken``.
    public func refreshGrant(token: Secret) -> HTTPRequest {
        var request = grant("refresh_token", JSONObject(["refresh_token": .secret(token)]))
        request.keepsPartialBody = true
        return request
    }

    /// Exchanges an ID token of another provider (`apple`, `google`, `azure`, `custom:…`).
    ///
    /// `nonce` is the raw nonce. The token must contain its SHA-256 in lower-case hexadecimal; either both have a nonce
    /// or neither. `accessToken` is the provider's, which the server compares with the token's `at_hash`. With
    /// `linkingTo`, a user's access token, the identity is added to that user. Throws for `oauth_provider`.
    public func idTokenGrant(
        provider: String, idToken: Secret, accessToken: Secret? = nil, nonce: Secret? = nil, captcha: Secret? = nil,
        linkingTo bearer: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject([
            "provider": .string(try SupabaseProject.checkedProvider(provider)), "id_token": .secret(idToken),
            "access_token": accessToken.map { .secret($0) }, "nonce": nonce.map { .secret($0) },
        ])
        if bearer != nil { body["link_identity"] = true }
        body.set(captcha: captcha)
        var request = grant("id_token", body, bearer: bearer)
        request.keepsPartialBody = bearer != nil
        return request
    }

    /// Exchanges a wallet's signature of a message (EIP-4361 and similar). `chain` is `ethereum` or `solana`. Throws
    /// for `chain` and `message`.
    public func web3Grant(
        chain: String, message: String, signature: Secret, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        guard ["ethereum", "solana"].contains(chain) else {
            throw FieldError(field: "chain", reason: "ethereum or solana")
        }
        guard (64...20_480).contains(message.utf8.count) else {
            throw FieldError(field: "message", reason: "not 64 to 20480 bytes")
        }
        var body = JSONObject([
            "chain": .string(chain), "message": .string(message), "signature": .secret(signature),
        ])
        body.set(captcha: captcha)
        return grant("web3", body)
    }

    private func grant(_ type: String, _ body: JSONObject, bearer: Secret? = nil) -> HTTPRequest {
        request("POST", "/token", query: [("grant_type", type)], body: body, bearer: bearer)
    }

    /// Checks the syntax of a provider's name: `google`, `linkedin_oidc`, `custom:acme`. Throws for `oauth_provider`.
    static func checkedProvider(_ name: String) throws(FieldError) -> String {
        let isName =
            (1...100).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: ":"):
                    true
                default: false
                }
            }
        guard isName else { throw FieldError(field: "oauth_provider", reason: "not a provider's name") }
        return name
    }
}

/// Requests that redeem a typed code or the hash from a mail's link. They need neither a PKCE verifier nor a redirect.
extension SupabaseProject {
    /// What a code or a hash was sent for.
    public enum Purpose: String, Sendable {
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

    /// Redeems a typed code; the response is a ``SessionResponse``. `contact` is where it was sent: for a change, the
    /// new address or number. Throws for `type` if it does not fit the contact.
    public func verify(_ code: OneTimeCode, for purpose: Purpose, of contact: Contact) throws(FieldError) -> HTTPRequest
    {
        switch contact {
        case .email where !purpose.isForPhone, .phone where purpose.isForPhone: break
        default:
            throw FieldError(field: "type", reason: "\(purpose.rawValue) does not belong to this kind of address")
        }
        var body = JSONObject(["type": .string(purpose.rawValue), "token": .secret(code.digits)])
        body.set(contact)
        return request("POST", "/verify", body: body)
    }

    /// Redeems the hash from the link of a mail. Hashes for PKCE (`pkce_…`) are accepted too. Throws for `type` and
    /// `token_hash`.
    public func verify(tokenHash: Secret, for purpose: Purpose) throws(FieldError) -> HTTPRequest {
        guard !purpose.isForPhone else {
            throw FieldError(field: "type", reason: "\(purpose.rawValue) has no token_hash")
        }
        guard tokenHash.count <= 512, PlainText.isToken(tokenHash.revealed()) else {
            throw FieldError(field: "token_hash", reason: "not the hash of a link")
        }
        return request(
            "POST", "/verify",
            body: JSONObject(["type": .string(purpose.rawValue), "token_hash": .secret(tokenHash)]))
    }
}

/// Members that several requests share.
extension JSONObject {
    /// Creates an object with the members in this order; those with nil are left out.
    init(_ members: KeyValuePairs<String, JSON?>) {
        self.init(members.compactMap { name, value in value.map { Member(name, $0) } })
    }

    /// `email` or `phone`.
    mutating func set(_ contact: Contact) {
        switch contact {
        case .email(let address): self["email"] = .string(address.text)
        case .phone(let number): self["phone"] = .string(number.digits)
        }
    }

    /// The CAPTCHA token, if the project has CAPTCHA protection.
    mutating func set(captcha: Secret?) {
        guard let captcha else { return }
        self["gotrue_meta_security"] = ["captcha_token": .secret(captcha)]
    }

    /// The PKCE challenge (RFC 7636), always S256, which the server writes in lower case.
    mutating func set(challenge: String?) {
        guard let challenge else { return }
        self["code_challenge"] = .string(challenge)
        self["code_challenge_method"] = .string(SupabaseProject.challengeMethod)
    }
}

extension JSON {
    /// A secret as JSON text; the body as a whole is a secret.
    static func secret(_ secret: Secret) -> JSON { .string(secret.revealed()) }

    /// A text, or nil.
    static func optional(_ text: String?) -> JSON? { text.map { .string($0) } }
}

extension SupabaseProject {
    static let challengeMethod = "s256"

    /// `redirect_to` as a query parameter, where the server reads it.
    static func query(redirectTo: String?) -> [(String, String)] {
        redirectTo.map { [("redirect_to", $0)] } ?? []
    }
}
