internal import LocalHTTP
internal import RingbackBase

/// Codes and links that users get by mail or phone. Here are the endpoints that only send one: `/otp`, `/magiclink`,
/// `/recover`, `/resend`, `/reauthenticate`.
extension SupabaseProject {
    private static let noSuchUser = "the project has no such user"

    /// Mails a code and a link, and stores the user and the challenge with which the app began. Returns the user.
    @discardableResult
    mutating func send(
        _ kind: SentCode.Kind, _ type: String, to user: SupabaseUser, _ challenge: SupabaseChallenge?,
        _ call: SupabaseCall
    ) throws -> SupabaseUser {
        var user = user
        try mail.mail(kind, type: type, to: user.email, about: &user, isPKCE: challenge != nil, call)
        flows.begin(type, for: user.id, challenge, call)
        return users.save(user, at: call.now)
    }

    @discardableResult
    mutating func message(
        _ kind: SentCode.Kind, _ type: String, to user: SupabaseUser, at phone: String, by channel: String = "sms",
        _ call: SupabaseCall
    ) throws -> SupabaseUser {
        var user = user
        try mail.message(kind, type: type, to: phone, by: channel, about: &user, call)
        return users.save(user, at: call.now)
    }

    private static func messageSent() -> ServerResponse {
        SupabaseResponses.json(["message_id": "SM" + String(SupabaseText.uuid().prefix(8))])
    }

    mutating func sendCode(_ call: SupabaseCall) throws -> ServerResponse {
        let body = try call.body()
        let (email, phone, channelName) = (try body.text("email"), try body.text("phone"), try body.text("channel"))
        try require(email.isEmpty || phone.isEmpty, "Only an email address or phone number should be provided")
        let isSignUp = try body.flag("create_user") ?? true
        if !email.isEmpty {
            try require(channelName.isEmpty, "Channel should only be specified with Phone OTP")
            let isKnown = users.user(email: try SupabaseText.address(email)) != nil
            try require(isSignUp || isKnown, 422, "otp_disabled", "Signups not allowed for otp")
            return try sendLink(body, call)
        }
        try require(!phone.isEmpty, "One of email or phone must be set")
        try require(call.settings.allowsPhone, 400, "phone_provider_disabled", "Unsupported phone provider")
        let number = try SupabaseText.number(phone)
        let channel = try SupabaseText.channel(channelName)
        let known = users.user(phone: number)
        if known == nil {
            try require(isSignUp, 422, "otp_disabled", "Signups not allowed for otp")
            try call.checkSignUp()
        }
        let user = try known ?? SupabaseUser(phone: number, password: nil, data: body.data(), at: call.now)
        try message(.phoneConfirmation, "sms", to: user, at: number, by: channel, call)
        return known == nil ? SupabaseResponses.json([:]) : Self.messageSent()
    }

    /// A magic link for a known user, the confirmation of a sign-up for a new one.
    mutating func sendLink(_ body: SupabaseBody, _ call: SupabaseCall) throws -> ServerResponse {
        try require(call.settings.allowsEmail, 422, "email_provider_disabled", "Email logins are disabled")
        let text = try body.text("email")
        try require(!text.isEmpty, "Password recovery requires an email", status: 422)
        let email = try SupabaseText.address(text)
        let challenge = try body.challenge()
        let known = users.user(email: email)
        var user = try known ?? SupabaseUser(email: email, password: nil, data: body.data(), at: call.now)
        if known == nil || !user.isConfirmed {
            try call.checkSignUp()
            guard call.settings.autoconfirm else {
                try send(.confirmation, "signup", to: user, challenge, call)
                return SupabaseResponses.json([:])
            }
            user.confirmEmail(at: call.now)
        }
        try send(.recovery, "magiclink", to: user, challenge, call)
        return SupabaseResponses.json([:])
    }

    /// The same response whether or not the address is known.
    mutating func recover(_ call: SupabaseCall) throws -> ServerResponse {
        let body = try call.body()
        try require(call.settings.allowsEmail, 400, "email_provider_disabled", "Email logins are disabled")
        let text = try body.text("email")
        try require(!text.isEmpty, "Password recovery requires an email")
        let email = try SupabaseText.address(text)
        let challenge = try body.challenge()
        if let user = users.user(email: email) {
            try send(.recovery, "recovery", to: user, challenge, call)
        } else {
            mail.omit(to: email, since: Self.noSuchUser)
        }
        return SupabaseResponses.json([:])
    }

    /// Sends again what was sent for a sign-up or a change; nothing if neither is pending.
    mutating func resend(_ call: SupabaseCall) throws -> ServerResponse {
        let body = try call.body()
        let type = try body.text("type")
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let isMail = ["signup", "email_change"].contains(type)
        let isKnown = isMail || ["sms", "phone_change"].contains(type)
        try require(isKnown, "Missing one of these types: signup, email_change, sms, phone_change")
        try require(email.isEmpty || phone.isEmpty, "Only an email address or phone number should be provided.")
        try require(!isMail || !email.isEmpty, "Type provided requires an email address")
        try require(isMail || !phone.isEmpty, "Type provided requires a phone number")
        let challenge = try body.challenge()
        let receiver = try isMail ? SupabaseText.address(email) : SupabaseText.number(phone)
        let found = isMail ? users.user(email: receiver) : users.user(phone: receiver)
        let kind = isMail ? "mail" : "SMS"
        guard var user = found else {
            mail.omit(kind, to: receiver, since: Self.noSuchUser)
            return SupabaseResponses.json([:])
        }
        switch type {
        case "signup" where user.emailConfirmedAt == nil:
            try send(.confirmation, "signup", to: user, challenge, call)
        case "email_change" where !user.newEmail.isEmpty:
            try mail.mailChange(of: &user, isPKCE: challenge != nil, call)
            flows.begin("email_change", for: user.id, challenge, call)
            users.save(user, at: call.now)
        case "sms" where user.phoneConfirmedAt == nil:
            try message(.phoneConfirmation, "sms", to: user, at: user.phone, call)
            return Self.messageSent()
        case "phone_change" where !user.newPhone.isEmpty:
            try message(.phoneChange, "phone_change", to: user, at: user.newPhone, call)
            return Self.messageSent()
        default: mail.omit(kind, to: receiver, since: "nothing of the user waits to be confirmed")
        }
        return SupabaseResponses.json([:])
    }

    mutating func reauthenticate(_ call: SupabaseCall) throws -> ServerResponse {
        let user = try authenticate(call).user
        if !user.email.isEmpty {
            try require(user.emailConfirmedAt != nil, 422, "email_not_confirmed", "Please verify your email first.")
            try send(.reauthentication, "reauthentication", to: user, nil, call)
            return SupabaseResponses.json([:])
        }
        try require(!user.phone.isEmpty, "Reauthentication requires the user to have an email or a phone number")
        try require(user.phoneConfirmedAt != nil, 422, "phone_not_confirmed", "Please verify your phone first.")
        try message(.reauthentication, "reauthentication", to: user, at: user.phone, call)
        return Self.messageSent()
    }
}

extension SupabaseCall {
    func checkSignUp() throws {
        try require(settings.allowsSignUp, 422, "signup_disabled", "Signups not allowed for this instance")
    }

    func checkLinking() throws {
        try require(settings.allowsLinking, 404, "manual_linking_disabled", "Manual linking is disabled")
    }
}

/// How users come to be, and what a confirmed address or number changes in them.
extension SupabaseUser {
    init(email: String, password: String?, data: JSONObject, at now: Int) {
        self.init(at: .next(now))
        self.email = email
        self.password = password
        merge(data)
        addOwnIdentity("email", email, at: now)
        for name in ["sub", "email", "email_verified", "phone_verified"] {
            userMetadata[name] = identities.first?.data[name]
        }
    }

    init(phone: String, password: String?, data: JSONObject, at now: Int) {
        self.init(at: .next(now))
        self.phone = phone
        self.password = password
        merge(data)
        addOwnIdentity("phone", phone, at: now)
    }

    private mutating func addOwnIdentity(_ provider: String, _ value: String, at now: Int) {
        guard !identities.contains(where: { $0.provider == provider }) else { return }
        let data: JSONObject = ["sub": id, provider: value, "email_verified": false, "phone_verified": false]
        addIdentity(SupabaseIdentity(provider: provider, subject: id, data: data, at: .next(now)))
    }

    private mutating func setIdentities(_ provider: String, _ name: String, _ value: JSON) {
        for index in identities.indices where identities[index].provider == provider {
            identities[index].data[name] = value
        }
    }

    mutating func confirmEmail(at now: Int) {
        if emailConfirmedAt == nil { emailConfirmedAt = .next(now) }
        isAnonymous = false
        sentCodes[.confirmation] = nil
        setIdentities("email", "email_verified", true)
        userMetadata["email_verified"] = true
    }

    mutating func confirmPhone(at now: Int) {
        if phoneConfirmedAt == nil { phoneConfirmedAt = .next(now) }
        isAnonymous = false
        sentCodes[.phoneConfirmation] = nil
        setIdentities("phone", "phone_verified", true)
    }

    mutating func changeEmail(at now: Int) {
        email = newEmail
        newEmail = ""
        emailChangeConfirmations = 0
        sentCodes[.emailChangeCurrent] = nil
        sentCodes[.emailChangeNew] = nil
        addOwnIdentity("email", email, at: now)
        setIdentities("email", "email", .string(email))
        userMetadata["email"] = .string(email)
        emailConfirmedAt = nil
        confirmEmail(at: now)
    }

    mutating func changePhone(at now: Int) {
        phone = newPhone
        newPhone = ""
        sentCodes[.phoneChange] = nil
        addOwnIdentity("phone", phone, at: now)
        setIdentities("phone", "phone", .string(phone))
        phoneConfirmedAt = nil
        confirmPhone(at: now)
    }
}
