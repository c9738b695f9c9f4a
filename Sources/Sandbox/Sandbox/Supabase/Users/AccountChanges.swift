internal import LocalHTTP
internal import StrictJSON

/// `PUT /user`: what users change of themselves.
extension SupabaseCodes {
    mutating func updateUser(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        var (user, session) = try accounts.authenticate(call)
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        let changesPassword = body.members["password"] != nil && body.members["password"] != .null
        let challenge = try body.challenge()
        let channel = try SupabaseText.channel(body.text("channel"))
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
        if !email.isEmpty { try change(email: email, of: &user, challenge, call, accounts.users, &flows) }
        if !phone.isEmpty { try change(phone: phone, of: &user, channel, call, accounts.users) }
        let changed = accounts.users.save(user, at: call.now)
        if changesPassword { accounts.sessions.end { $0.userID == user.id && $0.id != session.id } }
        return SupabaseResponses.json(changed.json)
    }

    private func change(
        password: String, of user: inout SupabaseUser, _ session: SupabaseSession, _ body: SupabaseBody,
        isNewcomer: Bool, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        if user.isAnonymous, isNewcomer {
            throw .validation(
                "Updating password of an anonymous user without an email or phone is not allowed", status: 422)
        }
        if call.settings.requiresCurrentPassword, let current = user.password {
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
        if call.settings.securesPasswordChange, call.now > session.createdAt + 86_400 {
            let nonce = try body.text("nonce")
            guard !nonce.isEmpty else {
                throw SupabaseErrorResponse(
                    400, "reauthentication_needed", "Password update requires reauthentication")
            }
            guard let sentCode = user.sentCodes[.reauthentication], sentCode.code == nonce,
                call.now - sentCode.sentAt <= call.settings.otpLifetime
            else {
                throw SupabaseErrorResponse(422, "reauthentication_not_valid", "Nonce has expired or is invalid")
            }
            user.sentCodes[.reauthentication] = nil
        }
        try call.settings.check(password: password)
        if user.password == password {
            throw SupabaseErrorResponse(
                422, "same_password", "New password should be different from the old password.")
        }
        user.password = password
    }

    private mutating func change(
        email text: String, of user: inout SupabaseUser, _ challenge: SupabaseChallenge?, _ call: SupabaseCall,
        _ users: SupabaseUsers, _ flows: inout SupabaseFlows
    ) throws(SupabaseErrorResponse) {
        let email = try SupabaseText.address(text)
        guard email != user.email else { return }
        guard users.user(email: email) == nil else {
            throw SupabaseErrorResponse(
                422, "email_exists", "A user with this email address has already been registered")
        }
        user.newEmail = email
        guard !call.settings.autoconfirm else { return user.changeEmail(at: call.now) }
        try mail.mailChange(of: &user, isPKCE: challenge != nil, call)
        flows.begin("email_change", for: user.id, challenge, call)
    }

    private mutating func change(
        phone text: String, of user: inout SupabaseUser, _ channel: String, _ call: SupabaseCall,
        _ users: SupabaseUsers
    ) throws(SupabaseErrorResponse) {
        let phone = try SupabaseText.number(text)
        guard phone != user.phone else { return }
        guard users.user(phone: phone) == nil else {
            throw SupabaseErrorResponse(
                422, "phone_exists", "A user with this phone number has already been registered")
        }
        user.newPhone = phone
        guard !call.settings.phoneAutoconfirm else { return user.changePhone(at: call.now) }
        try mail.message(.phoneChange, type: "phone_change", to: phone, by: channel, about: &user, call)
    }
}
