public import HTTPMessages
public import Secrets
public import StrictJSON

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
