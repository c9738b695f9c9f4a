internal import LocalHTTP
internal import RingbackBase

/// `POST /signup`: a new user with a password, or an anonymous one.
extension SupabaseProject {
    mutating func signUp(_ call: SupabaseCall) throws -> ServerResponse {
        try call.checkSignUp()
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        if email.isEmpty, phone.isEmpty { return try signUpAnonymously(body, call) }
        let password = try body.text("password")
        try require(!password.isEmpty, "Signup requires a valid password")
        try call.settings.check(password: password)
        try require(
            email.isEmpty || phone.isEmpty, "Only an email address or phone number should be provided on signup.")
        let challenge = try body.challenge()
        if !email.isEmpty { return try signUp(email: email, password, body, challenge, call) }
        try require(challenge == nil, "PKCE not supported for phone signups")
        return try signUp(phone: phone, password, body, call)
    }

    private mutating func signUpAnonymously(_ body: SupabaseBody, _ call: SupabaseCall) throws -> ServerResponse {
        try require(
            call.settings.allowsAnonymous, 422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled")
        var user = SupabaseUser(at: call.instant(), isAnonymous: true)
        user.merge(try body.data())
        users.save(user, at: call.now)
        return try signIn(user.id, by: "anonymous", call)
    }

    private mutating func signUp(
        email text: String, _ password: String, _ body: SupabaseBody, _ challenge: SupabaseChallenge?,
        _ call: SupabaseCall
    ) throws -> ServerResponse {
        try require(call.settings.allowsEmail, 400, "email_provider_disabled", "Email signups are disabled")
        let email = try SupabaseText.address(text)
        let data = try body.data()
        let known = users.user(email: email)
        if let known, known.emailConfirmedAt != nil { return try answer(signUpOf: known, data: data, call) }
        var user = known ?? SupabaseUser(email: email, password: password, data: data, at: call.now)
        guard call.settings.autoconfirm else {
            return SupabaseResponses.json(value: try send(.confirmation, "signup", to: user, challenge, call))
        }
        user.confirmEmail(at: call.now)
        users.save(user, at: call.now)
        return try signIn(user.id, by: "password", call)
    }

    private mutating func signUp(
        phone text: String, _ password: String, _ body: SupabaseBody, _ call: SupabaseCall
    ) throws -> ServerResponse {
        try require(call.settings.allowsPhone, 400, "phone_provider_disabled", "Phone signups are disabled")
        let phone = try SupabaseText.number(text)
        let channel = try SupabaseText.channel(body.text("channel"))
        let data = try body.data()
        let known = users.user(phone: phone)
        if let known, known.phoneConfirmedAt != nil { return try answer(signUpOf: known, data: data, call) }
        var user = known ?? SupabaseUser(phone: phone, password: password, data: data, at: call.now)
        guard call.settings.phoneAutoconfirm else {
            let asked = try message(.phoneConfirmation, "sms", to: user, at: phone, by: channel, call)
            return SupabaseResponses.json(value: asked)
        }
        user.confirmPhone(at: call.now)
        users.save(user, at: call.now)
        return try signIn(user.id, by: "password", call)
    }

    /// The user exists already. Only if a sign-up is confirmed by mail can that be hidden from the client.
    private mutating func answer(
        signUpOf known: SupabaseUser, data: JSONObject, _ call: SupabaseCall
    ) throws -> ServerResponse {
        let isShown = call.settings.autoconfirm || call.settings.phoneAutoconfirm
        try require(!isShown, 422, "user_already_exists", "User already registered")
        let hasAddress = !known.email.isEmpty
        mail.omit(
            hasAddress ? "mail" : "SMS", to: hasAddress ? known.email : known.phone,
            since: "the user has signed up already")
        return SupabaseResponses.json(known.obfuscated(data: data, at: call.instant()))
    }
}

extension SupabaseSettings {
    func check(password: String) throws { if let error = weakness(of: password) { throw error } }

    /// Why a password may not be chosen; a response also says it of a password with which somebody has signed in.
    func weakness(of password: String) -> SupabaseError? {
        if password.utf8.count > 72 { return SupabaseError("Password cannot be longer than 72 characters") }
        var texts: [String] = []
        var reasons: [String] = []
        if password.utf8.count < minPasswordLength {
            texts.append("Password should be at least \(minPasswordLength) characters.")
            reasons.append("length")
        }
        if requiresDigit, !password.utf8.contains(where: \.isDigit) {
            texts.append("Password should contain at least one character of each: 0123456789.")
            reasons.append("characters")
        }
        if leakedPasswords.contains(password) {
            texts.append("Password is known to be weak and easy to guess, please choose a different one.")
            reasons.append("pwned")
        }
        guard !reasons.isEmpty else { return nil }
        var error = SupabaseError(422, "weak_password", texts.joined(separator: " "))
        error.reasons = reasons
        return error
    }
}
