internal import LocalHTTP
internal import StrictJSON

/// `/user` and `/logout`: what users see and change of themselves.
extension SupabaseProject {
    func showUser(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        SupabaseResponses.json(try authenticate(call).user.json)
    }

    mutating func updateUser(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var (user, session) = try authenticate(call)
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        let changesPassword = body.members["password"] != nil && body.members["password"] != .null
        let challenge = try body.challenge()
        let channel = try channel(body.text("channel"))
        if body.members["app_metadata"] != nil {
            throw SupabaseErrorResponse(403, "not_admin", "Updating app_metadata requires admin privileges")
        }
        let changesAny = !email.isEmpty || !phone.isEmpty || changesPassword
        if user.isManaged, changesAny {
            throw SupabaseErrorResponse(
                422, "user_sso_managed", "Updating email, phone, password of a SSO account only possible via SSO")
        }
        if changesAny, user.hasVerifiedFactor, session.level != "aal2" {
            throw SupabaseErrorResponse(
                401, "insufficient_aal",
                "AAL2 session is required to update email or password when MFA is enabled.")
        }
        if changesPassword {
            try change(password: password, of: &user, session, body, isNewcomer: email.isEmpty && phone.isEmpty, call)
        }
        if let data = try body.object("data") { user.merge(data) }
        if !email.isEmpty { try change(email: email, of: &user, challenge, call) }
        if !phone.isEmpty { try change(phone: phone, of: &user, channel, call) }
        save(user, at: call.now)
        if changesPassword { endSessions { $0.userID == user.id && $0.id != session.id } }
        return SupabaseResponses.json(users[user.id]?.json ?? user.json)
    }

    private func change(
        password: String, of user: inout SupabaseUser, _ session: SupabaseSession, _ body: SupabaseBody,
        isNewcomer: Bool, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        if user.isAnonymous, isNewcomer {
            throw .validation(
                "Updating password of an anonymous user without an email or phone is not allowed", status: 422)
        }
        if settings.requiresCurrentPassword, let current = user.password {
            let stated = try body.text("current_password")
            guard !stated.isEmpty else {
                throw SupabaseErrorResponse(
                    400, "current_password_required", "Current password required when setting new password.")
            }
            guard stated == current else {
                throw SupabaseErrorResponse(
                    400, "current_password_invalid", "Current password required when setting new password.")
            }
        }
        if settings.securesPasswordChange, call.now > session.createdAt + 86_400 {
            let nonce = try body.text("nonce")
            guard !nonce.isEmpty else {
                throw SupabaseErrorResponse(
                    400, "reauthentication_needed", "Password update requires reauthentication")
            }
            guard let sentCode = user.sentCodes[.reauthentication], sentCode.code == nonce,
                call.now - sentCode.sentAt <= settings.otpLifetime
            else {
                throw SupabaseErrorResponse(422, "reauthentication_not_valid", "Nonce has expired or is invalid")
            }
            user.sentCodes[.reauthentication] = nil
        }
        try check(password: password)
        if user.password == password {
            throw SupabaseErrorResponse(
                422, "same_password", "New password should be different from the old password.")
        }
        user.password = password
    }

    private mutating func change(
        email text: String, of user: inout SupabaseUser, _ challenge: SupabaseChallenge?, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        let email = try address(text)
        guard email != user.email else { return }
        guard self.user(email: email) == nil else {
            throw SupabaseErrorResponse(
                422, "email_exists", "A user with this email address has already been registered")
        }
        user.newEmail = email
        guard !settings.autoconfirm else { return changeEmail(of: &user, at: call.now) }
        try mailChange(of: &user, isPKCE: challenge != nil, call)
        begin("email_change", for: user.id, challenge, call)
    }

    private mutating func change(
        phone text: String, of user: inout SupabaseUser, _ channel: String, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        let phone = try number(text)
        guard phone != user.phone else { return }
        guard self.user(phone: phone) == nil else {
            throw SupabaseErrorResponse(
                422, "phone_exists", "A user with this phone number has already been registered")
        }
        user.newPhone = phone
        guard !settings.phoneAutoconfirm else { return changePhone(of: &user, at: call.now) }
        try message(.phoneChange, type: "phone_change", to: phone, by: channel, about: &user, call)
    }

    /// The new address replaces the old one.
    mutating func changeEmail(of user: inout SupabaseUser, at now: Int) {
        user.email = user.newEmail
        user.newEmail = ""
        user.emailChangeConfirmations = 0
        user.sentCodes[.emailChangeCurrent] = nil
        user.sentCodes[.emailChangeNew] = nil
        addMailIdentity(to: &user, at: now)
        for index in user.identities.indices where user.identities[index].provider == "email" {
            user.identities[index].data["email"] = .string(user.email)
        }
        user.userMetadata["email"] = .string(user.email)
        user.emailConfirmedAt = nil
        confirmEmail(of: &user, at: now)
    }

    mutating func changePhone(of user: inout SupabaseUser, at now: Int) {
        user.phone = user.newPhone
        user.newPhone = ""
        user.sentCodes[.phoneChange] = nil
        addPhoneIdentity(to: &user, at: now)
        for index in user.identities.indices where user.identities[index].provider == "phone" {
            user.identities[index].data["phone"] = .string(user.phone)
        }
        user.phoneConfirmedAt = nil
        confirmPhone(of: &user, at: now)
    }

    /// Access tokens that were issued stay valid for servers that do not ask here.
    mutating func logOut(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let scope = call.query("scope") ?? "global"
        let (user, session) = try authenticate(call)
        switch scope {
        case "global": endSessions { $0.userID == user.id }
        case "local": endSessions { $0.id == session.id }
        case "others": endSessions { $0.userID == user.id && $0.id != session.id }
        default: throw .validation("Unsupported logout scope \"\(scope)\"")
        }
        return SupabaseResponses.empty(204)
    }
}
