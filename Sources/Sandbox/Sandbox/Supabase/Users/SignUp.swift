internal import LocalHTTP
internal import RingbackBase

/// `POST /signup`: a new user with a password, or an anonymous one.
extension SupabaseCodes {
    mutating func signUp(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        guard call.settings.allowsSignUp else {
            throw SupabaseError(422, "signup_disabled", "Signups not allowed for this instance")
        }
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        if email.isEmpty, phone.isEmpty { return try signUpAnonymously(body, call, &accounts) }
        let password = try body.text("password")
        guard !password.isEmpty else { throw .validation("Signup requires a valid password") }
        try call.settings.check(password: password)
        guard email.isEmpty || phone.isEmpty else {
            throw .validation("Only an email address or phone number should be provided on signup.")
        }
        let challenge = try body.challenge()
        if !email.isEmpty { return try signUp(email: email, password, body, challenge, call, &accounts, &flows) }
        guard challenge == nil else { throw .validation("PKCE not supported for phone signups") }
        return try signUp(phone: phone, password, body, call, &accounts)
    }

    private func signUpAnonymously(
        _ body: SupabaseBody, _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        guard call.settings.allowsAnonymous else {
            throw SupabaseError(422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled")
        }
        var user = SupabaseUser(at: call.instant(), isAnonymous: true)
        user.merge(try body.object("data") ?? JSONObject())
        accounts.users.save(user, at: call.now)
        return try accounts.signIn(user.id, by: "anonymous", call)
    }

    private mutating func signUp(
        email text: String, _ password: String, _ body: SupabaseBody, _ challenge: SupabaseChallenge?,
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        guard call.settings.allowsEmail else {
            throw SupabaseError(400, "email_provider_disabled", "Email signups are disabled")
        }
        let email = try SupabaseText.address(text)
        let data = try body.object("data") ?? JSONObject()
        if let known = accounts.users.user(email: email), known.emailConfirmedAt != nil {
            return try answer(signUpOf: known, data: data, call)
        }
        var user =
            accounts.users.user(email: email)
            ?? SupabaseUser(email: email, password: password, data: data, at: call.now)
        if call.settings.autoconfirm {
            user.confirmEmail(at: call.now)
            accounts.users.save(user, at: call.now)
            return try accounts.signIn(user.id, by: "password", call)
        }
        try mail.mail(.confirmation, type: "signup", to: email, about: &user, isPKCE: challenge != nil, call)
        accounts.users.save(user, at: call.now)
        flows.begin("email/signup", for: user.id, challenge, call)
        return SupabaseResponses.json(user.json)
    }

    private mutating func signUp(
        phone text: String, _ password: String, _ body: SupabaseBody, _ call: SupabaseCall,
        _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        guard call.settings.allowsPhone else {
            throw SupabaseError(400, "phone_provider_disabled", "Phone signups are disabled")
        }
        let phone = try SupabaseText.number(text)
        let channel = try SupabaseText.channel(body.text("channel"))
        let data = try body.object("data") ?? JSONObject()
        if let known = accounts.users.user(phone: phone), known.phoneConfirmedAt != nil {
            return try answer(signUpOf: known, data: data, call)
        }
        var user =
            accounts.users.user(phone: phone)
            ?? SupabaseUser(phone: phone, password: password, data: data, at: call.now)
        if call.settings.phoneAutoconfirm {
            user.confirmPhone(at: call.now)
            accounts.users.save(user, at: call.now)
            return try accounts.signIn(user.id, by: "password", call)
        }
        try mail.message(.phoneConfirmation, type: "sms", to: phone, by: channel, about: &user, call)
        accounts.users.save(user, at: call.now)
        return SupabaseResponses.json(user.json)
    }

    /// The user exists already. Only if a sign-up is confirmed by mail can that be hidden from the client.
    private func answer(
        signUpOf known: SupabaseUser, data: JSONObject, _ call: SupabaseCall
    ) throws(SupabaseError) -> ServerResponse {
        guard !call.settings.autoconfirm, !call.settings.phoneAutoconfirm else {
            throw SupabaseError(422, "user_already_exists", "User already registered")
        }
        return SupabaseResponses.json(known.obfuscated(data: data, at: call.instant()))
    }
}

extension SupabaseSettings {
    func check(password: String) throws(SupabaseError) {
        guard password.utf8.count <= 72 else {
            throw .validation("Password cannot be longer than 72 characters")
        }
        var texts: [String] = []
        var reasons: [String] = []
        if password.utf8.count < minPasswordLength {
            texts.append("Password should be at least \(minPasswordLength) characters.")
            reasons.append("length")
        }
        if requiresDigit, !password.utf8.contains(where: { (0x30...0x39).contains($0) }) {
            texts.append("Password should contain at least one character of each: 0123456789.")
            reasons.append("characters")
        }
        if leakedPasswords.contains(password) {
            texts.append("Password is known to be weak and easy to guess, please choose a different one.")
            reasons.append("pwned")
        }
        guard !reasons.isEmpty else { return }
        var refusal = SupabaseError(422, "weak_password", texts.joined(separator: " "))
        refusal.reasons = reasons
        throw refusal
    }

    /// What a response says of a weak password with which somebody has signed in.
    func weakness(of password: String) -> JSON {
        do throws(SupabaseError) {
            try check(password: password)
            return .null
        } catch {
            return [
                "message": .string(error.message), "reasons": .array(error.reasons.map(JSON.string)),
            ]
        }
    }
}
