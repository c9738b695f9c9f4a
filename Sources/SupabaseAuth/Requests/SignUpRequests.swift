public import HTTPMessages
public import Secrets
public import StrictJSON

/// How a code gets to a phone.
public enum MessageChannel: String, Sendable {
    case sms
    case whatsapp
}

/// Where a mail's link leads, and how the code in it is proved. For a typed code neither is needed.
public struct MailLink: Sendable, Equatable {
    /// ``SupabaseRedirect/url``; nil for the project's Site URL.
    public var redirectTo: String?
    /// The challenge of the flow's PKCE: its budget is five minutes from the request, mostly. Nil where the code is to
    /// be typed or the link's hash to be posted.
    public var challenge: String?

    /// A link, or none.
    public init(redirectTo: String? = nil, challenge: String? = nil) {
        self.redirectTo = redirectTo
        self.challenge = challenge
    }

    /// Nothing: the code is typed.
    public static let none = MailLink()
}

/// Requests that make users and send them messages.
extension SupabaseProject {
    /// What a new user brings along.
    public struct NewUser: Sendable, Equatable {
        public var contact: Contact
        public var password: Secret
        /// `user_metadata`; anything but an object is refused where it is parsed.
        public var data: JSONObject?
        /// For a phone number; nil for the server's choice, SMS.
        public var channel: MessageChannel?

        /// A user to be.
        public init(contact: Contact, password: Secret, data: JSONObject? = nil, channel: MessageChannel? = nil) {
            self.contact = contact
            self.password = password
            self.data = data
            self.channel = channel
        }
    }

    /// Makes a user; the answer is a ``SignUpResponse``. Throws for `password` and `channel`. For a phone number the link
    /// is left out: the server refuses its challenge.
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

    /// Makes a user without name and password. The answer is a ``SessionResponse``.
    public func signUpAnonymously(data: JSONObject? = nil, captcha: Secret? = nil) -> HTTPRequest {
        var body = JSONObject(["data": data.map { .object($0) }])
        body.set(captcha: captcha)
        return request("POST", "/signup", body: body)
    }

    /// Sends a one-time code, by mail with a link beside it; the answer is a ``MessageResponse``. Unless `createsUser`,
    /// an unknown address is `otp_disabled`. Throws for `channel`.
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

    /// Sends a link by mail: the older request, which ``sendCode(to:createsUser:data:channel:link:captcha:)`` replaced.
    public func sendMagicLink(
        to address: EmailAddress, data: JSONObject? = nil, link: MailLink = .none, captcha: Secret? = nil
    ) -> HTTPRequest {
        let body = JSONObject(["email": .string(address.text), "data": data.map { .object($0) }])
        return mailing("/magiclink", .email(address), link, captcha, body)
    }

    /// Sends a mail to a person who forgot the password. An unknown address gets the same answer.
    public func sendRecovery(to address: EmailAddress, link: MailLink = .none, captcha: Secret? = nil) -> HTTPRequest {
        let contact = Contact.email(address)
        return mailing("/recover", contact, link, captcha, JSONObject(["email": .string(address.text)]))
    }

    /// What is sent once more.
    public enum Resending: String, Sendable {
        case signUp = "signup"
        case emailChange = "email_change"
        case sms
        case phoneChange = "phone_change"
    }

    /// Sends a message once more. `contact` is the user's current address or number, also for a change. Throws for
    /// `type`: mails go to addresses, messages to numbers.
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
    /// The server refuses a channel beside an e-mail address.
    fileprivate mutating func set(channel: MessageChannel?, for contact: Contact) throws(FieldError) {
        guard let channel else { return }
        guard case .phone = contact else { throw FieldError(field: "channel", reason: "only for a phone number") }
        self["channel"] = .string(channel.rawValue)
    }
}
