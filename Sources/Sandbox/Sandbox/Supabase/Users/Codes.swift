internal import LocalHTTP
internal import RingbackBase

/// Codes and links that users get by mail or phone. Here are the endpoints that only send one: `/otp`, `/magiclink`,
/// `/recover`, `/resend`, `/reauthenticate`.
struct SupabaseCodes {
    var mail = SupabaseMail()

    mutating func sendCode(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        let body = try call.body()
        let (email, phone, channelName) = (try body.text("email"), try body.text("phone"), try body.text("channel"))
        guard email.isEmpty || phone.isEmpty else {
            throw .validation("Only an email address or phone number should be provided")
        }
        let isSignUp = try body.flag("create_user") ?? true
        if !email.isEmpty {
            guard channelName.isEmpty else {
                throw .validation("Channel should only be specified with Phone OTP")
            }
            let address = try SupabaseText.address(email)
            guard isSignUp || accounts.users.user(email: address) != nil else {
                throw SupabaseError(422, "otp_disabled", "Signups not allowed for otp")
            }
            return try sendLink(body, call, &accounts, &flows)
        }
        guard !phone.isEmpty else { throw .validation("One of email or phone must be set") }
        guard call.settings.allowsPhone else {
            throw SupabaseError(400, "phone_provider_disabled", "Unsupported phone provider")
        }
        let number = try SupabaseText.number(phone)
        let channel = try SupabaseText.channel(channelName)
        guard var known = accounts.users.user(phone: number) else {
            guard isSignUp else { throw SupabaseError(422, "otp_disabled", "Signups not allowed for otp") }
            guard call.settings.allowsSignUp else {
                throw SupabaseError(422, "signup_disabled", "Signups not allowed for this instance")
            }
            var user = SupabaseUser(
                phone: number, password: nil, data: try body.object("data") ?? JSONObject(), at: call.now)
            try mail.message(.phoneConfirmation, type: "sms", to: number, by: channel, about: &user, call)
            accounts.users.save(user, at: call.now)
            return SupabaseResponses.json([:])
        }
        try mail.message(.phoneConfirmation, type: "sms", to: number, by: channel, about: &known, call)
        accounts.users.save(known, at: call.now)
        return SupabaseResponses.json(["message_id": .string("SM" + String(SupabaseText.uuid().prefix(8)))])
    }

    /// A magic link for a known user, the confirmation of a sign-up for a new one.
    mutating func sendLink(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        try sendLink(call.body(), call, &accounts, &flows)
    }

    private mutating func sendLink(
        _ body: SupabaseBody, _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        guard call.settings.allowsEmail else {
            throw SupabaseError(422, "email_provider_disabled", "Email logins are disabled")
        }
        let text = try body.text("email")
        guard !text.isEmpty else { throw .validation("Password recovery requires an email", status: 422) }
        let email = try SupabaseText.address(text)
        let challenge = try body.challenge()
        var found = accounts.users.user(email: email)
        if found == nil || found?.isConfirmed == false {
            guard call.settings.allowsSignUp else {
                throw SupabaseError(422, "signup_disabled", "Signups not allowed for this instance")
            }
            let data = try body.object("data") ?? JSONObject()
            var user = found ?? SupabaseUser(email: email, password: nil, data: data, at: call.now)
            guard call.settings.autoconfirm else {
                try mail.mail(.confirmation, type: "signup", to: email, about: &user, isPKCE: challenge != nil, call)
                accounts.users.save(user, at: call.now)
                flows.begin("email/signup", for: user.id, challenge, call)
                return SupabaseResponses.json([:])
            }
            user.confirmEmail(at: call.now)
            found = user
        }
        guard var user = found else { throw .failure }
        try mail.mail(.recovery, type: "magiclink", to: email, about: &user, isPKCE: challenge != nil, call)
        accounts.users.save(user, at: call.now)
        flows.begin("magiclink", for: user.id, challenge, call)
        return SupabaseResponses.json([:])
    }

    /// The same response whether or not the address is known.
    mutating func recover(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        let body = try call.body()
        guard call.settings.allowsEmail else {
            throw SupabaseError(400, "email_provider_disabled", "Email logins are disabled")
        }
        let text = try body.text("email")
        guard !text.isEmpty else { throw .validation("Password recovery requires an email") }
        let email = try SupabaseText.address(text)
        let challenge = try body.challenge()
        guard var user = accounts.users.user(email: email) else { return SupabaseResponses.json([:]) }
        try mail.mail(.recovery, type: "recovery", to: email, about: &user, isPKCE: challenge != nil, call)
        accounts.users.save(user, at: call.now)
        flows.begin("recovery", for: user.id, challenge, call)
        return SupabaseResponses.json([:])
    }

    /// Sends again what was sent for a sign-up or a change; nothing if neither is pending.
    mutating func resend(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        let body = try call.body()
        let type = try body.text("type")
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let isMail = ["signup", "email_change"].contains(type)
        guard isMail || ["sms", "phone_change"].contains(type) else {
            throw .validation("Missing one of these types: signup, email_change, sms, phone_change")
        }
        guard email.isEmpty || phone.isEmpty else {
            throw .validation("Only an email address or phone number should be provided.")
        }
        guard isMail ? !email.isEmpty : !phone.isEmpty else {
            throw .validation(
                isMail ? "Type provided requires an email address" : "Type provided requires a phone number")
        }
        let challenge = try body.challenge()
        let found =
            isMail
            ? accounts.users.user(email: try SupabaseText.address(email))
            : accounts.users.user(phone: try SupabaseText.number(phone))
        guard var user = found else { return SupabaseResponses.json([:]) }
        let isPKCE = challenge != nil
        switch type {
        case "signup" where user.emailConfirmedAt == nil:
            try mail.mail(.confirmation, type: "signup", to: user.email, about: &user, isPKCE: isPKCE, call)
            flows.begin("email/signup", for: user.id, challenge, call)
        case "email_change" where !user.newEmail.isEmpty:
            try mail.mailChange(of: &user, isPKCE: isPKCE, call)
            flows.begin("email_change", for: user.id, challenge, call)
        case "sms" where user.phoneConfirmedAt == nil:
            try mail.message(.phoneConfirmation, type: "sms", to: user.phone, by: "sms", about: &user, call)
        case "phone_change" where !user.newPhone.isEmpty:
            try mail.message(.phoneChange, type: "phone_change", to: user.newPhone, by: "sms", about: &user, call)
        default: return SupabaseResponses.json([:])
        }
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(
            isMail ? [:] : ["message_id": .string("SM" + String(SupabaseText.uuid().prefix(8)))])
    }

    mutating func reauthenticate(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        var user = try accounts.authenticate(call).user
        if !user.email.isEmpty {
            guard user.emailConfirmedAt != nil else {
                throw SupabaseError(422, "email_not_confirmed", "Please verify your email first.")
            }
            try mail.mail(
                .reauthentication, type: "reauthentication", to: user.email, about: &user, isPKCE: false, call)
            accounts.users.save(user, at: call.now)
            return SupabaseResponses.json([:])
        }
        guard !user.phone.isEmpty else {
            throw .validation("Reauthentication requires the user to have an email or a phone number")
        }
        guard user.phoneConfirmedAt != nil else {
            throw SupabaseError(422, "phone_not_confirmed", "Please verify your phone first.")
        }
        try mail.message(
            .reauthentication, type: "reauthentication", to: user.phone, by: "sms", about: &user, call)
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(["message_id": .string("SM" + String(SupabaseText.uuid().prefix(8)))])
    }
}

/// How users come to be, and what a confirmed address or number changes in them.
extension SupabaseUser {
    /// A user with an address that is to be confirmed.
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

    /// A user with a number that is to be confirmed.
    init(phone: String, password: String?, data: JSONObject, at now: Int) {
        self.init(at: .next(now))
        self.phone = phone
        self.password = password
        merge(data)
        addOwnIdentity("phone", phone, at: now)
    }

    /// The identity of the user's own address (`email`) or number (`phone`).
    private mutating func addOwnIdentity(_ provider: String, _ value: String, at now: Int) {
        guard !identities.contains(where: { $0.provider == provider }) else { return }
        let data = JSONObject([
            .init("sub", .string(id)), .init(provider, .string(value)), .init("email_verified", false),
            .init("phone_verified", false),
        ])
        addIdentity(SupabaseIdentity(provider: provider, subject: id, data: data, at: .next(now)))
    }

    mutating func confirmEmail(at now: Int) {
        if emailConfirmedAt == nil { emailConfirmedAt = .next(now) }
        isAnonymous = false
        sentCodes[.confirmation] = nil
        for index in identities.indices where identities[index].provider == "email" {
            identities[index].data["email_verified"] = true
        }
        userMetadata["email_verified"] = true
    }

    mutating func confirmPhone(at now: Int) {
        if phoneConfirmedAt == nil { phoneConfirmedAt = .next(now) }
        isAnonymous = false
        sentCodes[.phoneConfirmation] = nil
        for index in identities.indices where identities[index].provider == "phone" {
            identities[index].data["phone_verified"] = true
        }
    }

    /// The new address replaces the old one.
    mutating func changeEmail(at now: Int) {
        email = newEmail
        newEmail = ""
        emailChangeConfirmations = 0
        sentCodes[.emailChangeCurrent] = nil
        sentCodes[.emailChangeNew] = nil
        addOwnIdentity("email", email, at: now)
        for index in identities.indices where identities[index].provider == "email" {
            identities[index].data["email"] = .string(email)
        }
        userMetadata["email"] = .string(email)
        emailConfirmedAt = nil
        confirmEmail(at: now)
    }

    mutating func changePhone(at now: Int) {
        phone = newPhone
        newPhone = ""
        sentCodes[.phoneChange] = nil
        addOwnIdentity("phone", phone, at: now)
        for index in identities.indices where identities[index].provider == "phone" {
            identities[index].data["phone"] = .string(phone)
        }
        phoneConfirmedAt = nil
        confirmPhone(at: now)
    }
}
