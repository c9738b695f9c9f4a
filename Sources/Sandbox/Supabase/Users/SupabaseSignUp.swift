internal import LocalHTTP
internal import StrictJSON

/// `POST /signup`: a new user with a password, or an anonymous one.
extension SupabaseProject {
    mutating func signUp(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        guard settings.allowsSignUp else {
            throw SupabaseErrorResponse(422, "signup_disabled", "Signups not allowed for this instance")
        }
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        if email.isEmpty, phone.isEmpty { return try signUpAnonymously(body, call) }
        let password = try body.text("password")
        guard !password.isEmpty else { throw .validation("Signup requires a valid password") }
        try check(password: password)
        guard email.isEmpty || phone.isEmpty else {
            throw .validation("Only an email address or phone number should be provided on signup.")
        }
        let challenge = try body.challenge()
        if !email.isEmpty { return try signUp(email: email, password, body, challenge, call) }
        guard challenge == nil else { throw .validation("PKCE not supported for phone signups") }
        return try signUp(phone: phone, password, body, call)
    }

    private mutating func signUpAnonymously(
        _ body: SupabaseBody, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard settings.allowsAnonymous else {
            throw SupabaseErrorResponse(422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled")
        }
        var user = SupabaseUser(at: instant(call.now), isAnonymous: true)
        user.merge(try body.object("data") ?? JSONObject())
        save(user, at: call.now)
        return try tokenResponse(open(user.id, by: "anonymous", at: call.now), at: call.now)
    }

    private mutating func signUp(
        email text: String, _ password: String, _ body: SupabaseBody, _ challenge: SupabaseChallenge?,
        _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard settings.allowsEmail else {
            throw SupabaseErrorResponse(400, "email_provider_disabled", "Email signups are disabled")
        }
        let email = try address(text)
        let data = try body.object("data") ?? JSONObject()
        if let known = user(email: email), known.emailConfirmedAt != nil {
            return try answer(signUpOf: known, data: data, call)
        }
        var user = user(email: email) ?? newUser(email: email, password: password, data: data, at: call.now)
        if settings.autoconfirm {
            confirmEmail(of: &user, at: call.now)
            save(user, at: call.now)
            return try tokenResponse(open(user.id, by: "password", at: call.now), at: call.now)
        }
        try mail(.confirmation, type: "signup", to: email, about: &user, isPKCE: challenge != nil, call)
        save(user, at: call.now)
        begin("email/signup", for: user.id, challenge, call)
        return SupabaseResponses.json(user.json)
    }

    private mutating func signUp(
        phone text: String, _ password: String, _ body: SupabaseBody, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard settings.allowsPhone else {
            throw SupabaseErrorResponse(400, "phone_provider_disabled", "Phone signups are disabled")
        }
        let phone = try number(text)
        let channel = try channel(body.text("channel"))
        let data = try body.object("data") ?? JSONObject()
        if let known = user(phone: phone), known.phoneConfirmedAt != nil {
            return try answer(signUpOf: known, data: data, call)
        }
        var user = user(phone: phone) ?? newUser(phone: phone, password: password, data: data, at: call.now)
        if settings.phoneAutoconfirm {
            confirmPhone(of: &user, at: call.now)
            save(user, at: call.now)
            return try tokenResponse(open(user.id, by: "password", at: call.now), at: call.now)
        }
        try message(.phoneConfirmation, type: "sms", to: phone, by: channel, about: &user, call)
        save(user, at: call.now)
        return SupabaseResponses.json(user.json)
    }

    /// The user exists already. Only if a sign-up is confirmed by mail can that be hidden from the client.
    private mutating func answer(
        signUpOf known: SupabaseUser, data: JSONObject, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard !settings.autoconfirm, !settings.phoneAutoconfirm else {
            throw SupabaseErrorResponse(422, "user_already_exists", "User already registered")
        }
        return SupabaseResponses.json(known.obfuscated(data: data, at: instant(call.now)))
    }

    // MARK: Users

    /// A user with an address that is to be confirmed.
    mutating func newUser(email: String, password: String?, data: JSONObject, at now: Int) -> SupabaseUser {
        var user = SupabaseUser(at: instant(now))
        user.email = email
        user.password = password
        user.merge(data)
        addMailIdentity(to: &user, at: now)
        for name in ["sub", "email", "email_verified", "phone_verified"] {
            user.userMetadata[name] = user.identities.first?.data[name]
        }
        return user
    }

    mutating func newUser(phone: String, password: String?, data: JSONObject, at now: Int) -> SupabaseUser {
        var user = SupabaseUser(at: instant(now))
        user.phone = phone
        user.password = password
        user.merge(data)
        addPhoneIdentity(to: &user, at: now)
        return user
    }

    mutating func addMailIdentity(to user: inout SupabaseUser, at now: Int) {
        guard !user.identities.contains(where: { $0.provider == "email" }) else { return }
        let data = JSONObject([
            .init("sub", .string(user.id)), .init("email", .string(user.email)), .init("email_verified", false),
            .init("phone_verified", false),
        ])
        user.addIdentity(SupabaseIdentity(provider: "email", subject: user.id, data: data, at: instant(now)))
    }

    mutating func addPhoneIdentity(to user: inout SupabaseUser, at now: Int) {
        guard !user.identities.contains(where: { $0.provider == "phone" }) else { return }
        let data = JSONObject([
            .init("sub", .string(user.id)), .init("phone", .string(user.phone)), .init("email_verified", false),
            .init("phone_verified", false),
        ])
        user.addIdentity(SupabaseIdentity(provider: "phone", subject: user.id, data: data, at: instant(now)))
    }

    mutating func confirmEmail(of user: inout SupabaseUser, at now: Int) {
        if user.emailConfirmedAt == nil { user.emailConfirmedAt = instant(now) }
        user.isAnonymous = false
        user.sentCodes[.confirmation] = nil
        for index in user.identities.indices where user.identities[index].provider == "email" {
            user.identities[index].data["email_verified"] = true
        }
        user.userMetadata["email_verified"] = true
    }

    mutating func confirmPhone(of user: inout SupabaseUser, at now: Int) {
        if user.phoneConfirmedAt == nil { user.phoneConfirmedAt = instant(now) }
        user.isAnonymous = false
        user.sentCodes[.phoneConfirmation] = nil
        for index in user.identities.indices where user.identities[index].provider == "phone" {
            user.identities[index].data["phone_verified"] = true
        }
    }

    // MARK: Checks

    func address(_ text: String) throws(SupabaseErrorResponse) -> String {
        guard let email = SupabaseText.email(text) else {
            throw .validation("Unable to validate email address: invalid format")
        }
        return email
    }

    func number(_ text: String) throws(SupabaseErrorResponse) -> String {
        guard let phone = SupabaseText.phone(text) else {
            throw .validation("Invalid phone number format (E.164 required)")
        }
        return phone
    }

    func check(password: String) throws(SupabaseErrorResponse) {
        guard password.utf8.count <= 72 else {
            throw .validation("Password cannot be longer than 72 characters")
        }
        var texts: [String] = []
        var reasons: [String] = []
        if password.utf8.count < settings.minPasswordLength {
            texts.append("Password should be at least \(settings.minPasswordLength) characters.")
            reasons.append("length")
        }
        if settings.requiresDigit, !password.utf8.contains(where: { (0x30...0x39).contains($0) }) {
            texts.append("Password should contain at least one character of each: 0123456789.")
            reasons.append("characters")
        }
        if settings.leakedPasswords.contains(password) {
            texts.append("Password is known to be weak and easy to guess, please choose a different one.")
            reasons.append("pwned")
        }
        guard !reasons.isEmpty else { return }
        var refusal = SupabaseErrorResponse(422, "weak_password", texts.joined(separator: " "))
        refusal.reasons = reasons
        throw refusal
    }
}
