internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// The endpoints that send a code or a link: `/otp`, `/magiclink`, `/recover`, `/resend`, `/reauthenticate`.
extension SupabaseProject {
    mutating func sendCode(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
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
            let address = try address(email)
            guard isSignUp || user(email: address) != nil else {
                throw SupabaseErrorResponse(422, "otp_disabled", "Signups not allowed for otp")
            }
            return try sendLink(body, call)
        }
        guard !phone.isEmpty else { throw .validation("One of email or phone must be set") }
        guard settings.allowsPhone else {
            throw SupabaseErrorResponse(400, "phone_provider_disabled", "Unsupported phone provider")
        }
        let number = try number(phone)
        let channel = try channel(channelName)
        guard var known = user(phone: number) else {
            guard isSignUp else { throw SupabaseErrorResponse(422, "otp_disabled", "Signups not allowed for otp") }
            guard settings.allowsSignUp else {
                throw SupabaseErrorResponse(422, "signup_disabled", "Signups not allowed for this instance")
            }
            var user = newUser(
                phone: number, password: nil, data: try body.object("data") ?? JSONObject(), at: call.now)
            try message(.phoneConfirmation, type: "sms", to: number, by: channel, about: &user, call)
            save(user, at: call.now)
            return SupabaseResponses.json([:])
        }
        try message(.phoneConfirmation, type: "sms", to: number, by: channel, about: &known, call)
        save(known, at: call.now)
        return SupabaseResponses.json(["message_id": .string("SM" + String(SupabaseText.uuid().prefix(8)))])
    }

    /// A magic link for a known user, the confirmation of a sign-up for a new one.
    mutating func sendLink(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        try sendLink(call.body(), call)
    }

    private mutating func sendLink(
        _ body: SupabaseBody, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard settings.allowsEmail else {
            throw SupabaseErrorResponse(422, "email_provider_disabled", "Email logins are disabled")
        }
        let text = try body.text("email")
        guard !text.isEmpty else { throw .validation("Password recovery requires an email", status: 422) }
        let email = try address(text)
        let challenge = try body.challenge()
        var found = user(email: email)
        if found == nil || found?.isConfirmed == false {
            guard settings.allowsSignUp else {
                throw SupabaseErrorResponse(422, "signup_disabled", "Signups not allowed for this instance")
            }
            let data = try body.object("data") ?? JSONObject()
            var user = found ?? newUser(email: email, password: nil, data: data, at: call.now)
            guard settings.autoconfirm else {
                try mail(.confirmation, type: "signup", to: email, about: &user, isPKCE: challenge != nil, call)
                save(user, at: call.now)
                begin("email/signup", for: user.id, challenge, call)
                return SupabaseResponses.json([:])
            }
            confirmEmail(of: &user, at: call.now)
            found = user
        }
        guard var user = found else { throw .failure }
        try mail(.recovery, type: "magiclink", to: email, about: &user, isPKCE: challenge != nil, call)
        save(user, at: call.now)
        begin("magiclink", for: user.id, challenge, call)
        return SupabaseResponses.json([:])
    }

    /// The same response whether or not the address is known.
    mutating func recover(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let body = try call.body()
        guard settings.allowsEmail else {
            throw SupabaseErrorResponse(400, "email_provider_disabled", "Email logins are disabled")
        }
        let text = try body.text("email")
        guard !text.isEmpty else { throw .validation("Password recovery requires an email") }
        let email = try address(text)
        let challenge = try body.challenge()
        guard var user = user(email: email) else { return SupabaseResponses.json([:]) }
        try mail(.recovery, type: "recovery", to: email, about: &user, isPKCE: challenge != nil, call)
        save(user, at: call.now)
        begin("recovery", for: user.id, challenge, call)
        return SupabaseResponses.json([:])
    }

    /// Sends again what was sent for a sign-up or a change; nothing if neither is pending.
    mutating func resend(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
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
        let found = isMail ? user(email: try address(email)) : user(phone: try number(phone))
        guard var user = found else { return SupabaseResponses.json([:]) }
        let isPKCE = challenge != nil
        switch type {
        case "signup" where user.emailConfirmedAt == nil:
            try mail(.confirmation, type: "signup", to: user.email, about: &user, isPKCE: isPKCE, call)
            begin("email/signup", for: user.id, challenge, call)
        case "email_change" where !user.newEmail.isEmpty:
            try mailChange(of: &user, isPKCE: isPKCE, call)
            begin("email_change", for: user.id, challenge, call)
        case "sms" where user.phoneConfirmedAt == nil:
            try message(.phoneConfirmation, type: "sms", to: user.phone, by: "sms", about: &user, call)
        case "phone_change" where !user.newPhone.isEmpty:
            try message(.phoneChange, type: "phone_change", to: user.newPhone, by: "sms", about: &user, call)
        default: return SupabaseResponses.json([:])
        }
        save(user, at: call.now)
        return SupabaseResponses.json(
            isMail ? [:] : ["message_id": .string("SM" + String(SupabaseText.uuid().prefix(8)))])
    }

    /// Sends mail to both addresses, if the project requires that and there are two.
    mutating func mailChange(
        of user: inout SupabaseUser, isPKCE: Bool, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        user.emailChangeConfirmations = 0
        if settings.securesEmailChange, !user.email.isEmpty {
            try mail(.emailChangeCurrent, type: "email_change", to: user.email, about: &user, isPKCE: isPKCE, call)
        }
        try mail(.emailChangeNew, type: "email_change", to: user.newEmail, about: &user, isPKCE: isPKCE, call)
    }

    mutating func reauthenticate(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var user = try authenticate(call).user
        if !user.email.isEmpty {
            guard user.emailConfirmedAt != nil else {
                throw SupabaseErrorResponse(422, "email_not_confirmed", "Please verify your email first.")
            }
            try mail(
                .reauthentication, type: "reauthentication", to: user.email, about: &user, isPKCE: false, call)
            save(user, at: call.now)
            return SupabaseResponses.json([:])
        }
        guard !user.phone.isEmpty else {
            throw .validation("Reauthentication requires the user to have an email or a phone number")
        }
        guard user.phoneConfirmedAt != nil else {
            throw SupabaseErrorResponse(422, "phone_not_confirmed", "Please verify your phone first.")
        }
        try message(
            .reauthentication, type: "reauthentication", to: user.phone, by: "sms", about: &user, call)
        save(user, at: call.now)
        return SupabaseResponses.json(["message_id": .string("SM" + String(SupabaseText.uuid().prefix(8)))])
    }
}
