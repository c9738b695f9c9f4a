internal import Cryptography
internal import LocalHTTP
internal import StrictJSON

/// `POST /token`: a password, or the code at the end of a flow. Refreshes and ID tokens have files of their own.
extension SupabaseProject {
    mutating func passwordGrant(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        guard email.isEmpty || phone.isEmpty else {
            throw .validation("Only an email address or phone number should be provided on login.")
        }
        let found: SupabaseUser?
        if !email.isEmpty {
            guard settings.allowsEmail else {
                throw SupabaseErrorResponse(422, "email_provider_disabled", "Email logins are disabled")
            }
            found = user(email: email.lowercased())
        } else if !phone.isEmpty {
            guard settings.allowsPhone else {
                throw SupabaseErrorResponse(422, "phone_provider_disabled", "Phone logins are disabled")
            }
            found = user(phone: phone.filter { $0 != " " && $0 != "+" })
        } else {
            throw .validation("missing email or phone")
        }
        guard let user = found, let known = user.password, known == password else {
            throw SupabaseErrorResponse(400, "invalid_credentials", "Invalid login credentials")
        }
        if user.isBanned(at: call.now) { throw SupabaseErrorResponse(400, "user_banned", "User is banned") }
        if !email.isEmpty, user.emailConfirmedAt == nil {
            throw SupabaseErrorResponse(400, "email_not_confirmed", "Email not confirmed")
        }
        if !phone.isEmpty, user.phoneConfirmedAt == nil {
            throw SupabaseErrorResponse(400, "phone_not_confirmed", "Phone not confirmed")
        }
        let session = open(user.id, by: "password", at: call.now)
        return try tokenResponse(session, extra: [.init("weak_password", weakness(of: password))], at: call.now)
    }

    /// At a sign-in, a weak password is only reported.
    private func weakness(of password: String) -> JSON {
        do throws(SupabaseErrorResponse) {
            try check(password: password)
            return .null
        } catch {
            return [
                "message": .string(error.message), "reasons": .array(error.reasons.map(JSON.string)),
            ]
        }
    }

    mutating func codeGrant(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let body = try call.body()
        let (code, verifier) = (try body.text("auth_code"), try body.text("code_verifier"))
        guard !code.isEmpty, !verifier.isEmpty else {
            throw .validation("invalid request: both auth code and code verifier should be non-empty")
        }
        guard let index = flows.firstIndex(where: { $0.code == code }), let userID = flows[index].userID,
            flows[index].upstream != .none || flows[index].openedAt != nil
        else {
            throw SupabaseErrorResponse(
                404, "flow_state_not_found", "invalid flow state, no valid flow state found")
        }
        let flow = flows[index]
        guard !flow.hasExpired(at: call.now, lifetime: settings.flowLifetime) else {
            throw SupabaseErrorResponse(422, "flow_state_expired", "invalid flow state, flow state has expired")
        }
        guard let challenge = flow.challenge, challenge.isMet(by: verifier) else {
            throw SupabaseErrorResponse(
                400, "bad_code_verifier", "code challenge does not match previously saved code verifier")
        }
        flows.remove(at: index)
        let isManaged = flow.upstream == .sso
        let session = open(
            userID, by: flow.method, provider: isManaged ? String(flow.provider.dropFirst(4)) : nil, at: call.now)
        var extra: [JSONObject.Member] = []
        if let token = flow.providerToken { extra.append(.init("provider_token", .string(token))) }
        if let token = flow.providerRefreshToken { extra.append(.init("provider_refresh_token", .string(token))) }
        return try tokenResponse(session, extra: extra, at: call.now)
    }
}

extension SupabaseChallenge {
    func isMet(by verifier: String) -> Bool {
        value == (isPlain ? verifier : Base64URL.encode(Digest.sha256(verifier)))
    }
}
