internal import Cryptography
internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// A challenge for a second factor: it accepts one response, from the address that asked for it, within five minutes.
struct SupabaseFactorChallenge {
    let factorID: String
    let address: String
    let expiresAt: Int
    /// The code in the message.
    let code: String?
    let webAuthn: WebAuthnQuestion?
    var isAnswered = false
}

/// `/factors`: enrolling, challenging, verifying and removing second factors.
extension SupabaseProject {
    private static let challengeLifetime = 300
    private static let maxFactors = 10

    private func authenticateForFactors(
        _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> (user: SupabaseUser, session: SupabaseSession) {
        let caller = try authenticate(call)
        guard !caller.user.isAnonymous else {
            throw SupabaseErrorResponse(
                403, "no_authorization", "Anonymous user not allowed to perform these actions")
        }
        return caller
    }

    mutating func enrollFactor(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var (user, session) = try authenticateForFactors(call)
        let body = try call.body()
        let name = try body.text("friendly_name")
        let kind = try factorKind(body.text("factor_type"))
        let phone = kind == .phone ? try number(body.text("phone")) : ""
        user.factors.removeAll {
            !$0.isVerified && call.now > $0.createdAt.seconds + SupabaseProject.challengeLifetime
        }
        try checkEnrolling(user, session, name: name, phone: phone)
        let now = instant(call.now)
        let factor = SupabaseFactor(
            id: SupabaseText.uuid(), kind: kind, name: name, phone: phone,
            secret: kind == .totp ? RandomToken.bytes(20) : [], createdAt: now, updatedAt: now)
        user.factors.append(factor)
        save(user, at: call.now)
        var members = JSONObject([.init("id", .string(factor.id)), .init("type", .string(kind.rawValue))])
        members["friendly_name"] = .string(name)
        switch kind {
        case .webAuthn: break
        case .phone: members["phone"] = .string(phone)
        case .totp:
            let issuer = try body.text("issuer")
            members["totp"] = totp(factor, issuer.isEmpty ? SupabaseURL(settings.siteURL)?.host ?? "" : issuer, user)
        }
        return SupabaseResponses.json(.object(members))
    }

    private func factorKind(_ type: String) throws(SupabaseErrorResponse) -> SupabaseFactor.Kind {
        guard let kind = SupabaseFactor.Kind(rawValue: type) else {
            throw .validation("factor_type needs to be totp, phone, or webauthn")
        }
        guard settings.factors.contains(type) else {
            throw SupabaseErrorResponse(
                422, "mfa_\(type)_enroll_not_enabled", "MFA enroll is disabled for \(kind.title)")
        }
        return kind
    }

    private func checkEnrolling(
        _ user: SupabaseUser, _ session: SupabaseSession, name: String, phone: String
    ) throws(SupabaseErrorResponse) {
        if !phone.isEmpty, user.factors.contains(where: { $0.isVerified && $0.phone == phone }) {
            throw SupabaseErrorResponse(
                422, "mfa_verified_factor_exists",
                "A verified phone factor already exists, unenroll the existing factor to continue")
        }
        if user.factors.contains(where: { $0.name == name }) {
            throw SupabaseErrorResponse(
                422, "mfa_factor_name_conflict",
                "A factor with the friendly name \"\(name)\" for this user already exists")
        }
        guard user.factors.count < SupabaseProject.maxFactors else {
            throw SupabaseErrorResponse(
                422, "too_many_enrolled_mfa_factors",
                "Maximum number of verified factors reached, unenroll to continue")
        }
        if user.hasVerifiedFactor, session.level != "aal2" {
            throw SupabaseErrorResponse(403, "insufficient_aal", "AAL2 required to enroll a new factor")
        }
    }

    private func totp(_ factor: SupabaseFactor, _ issuer: String, _ user: SupabaseUser) -> JSON {
        let secret = SupabaseTOTP.base32(factor.secret)
        let account = user.email.isEmpty ? user.phone : user.email
        let uri =
            "otpauth://totp/\(FormEncoding.escape(issuer)):\(FormEncoding.escape(account))?algorithm=SHA1&digits=6"
            + "&issuer=\(FormEncoding.escape(issuer))&period=30&secret=\(secret)"
        return [
            "qr_code": .string(SupabaseTOTP.picture(of: uri)), "secret": .string(secret), "uri": .string(uri),
        ]
    }

    private func factor(_ id: String, of user: SupabaseUser) throws(SupabaseErrorResponse) -> Int {
        guard SupabaseText.isUUID(id) else { throw .validation("factor_id must be an UUID", status: 404) }
        guard let index = user.factors.firstIndex(where: { $0.id == id }) else {
            throw SupabaseErrorResponse(404, "mfa_factor_not_found", "Factor not found")
        }
        return index
    }

    /// Factors of a kind that was disabled stay, but cannot be used.
    private func checkUsable(_ factor: SupabaseFactor) throws(SupabaseErrorResponse) {
        let type = factor.kind.rawValue
        guard settings.factors.contains(type) else {
            throw SupabaseErrorResponse(
                422, "mfa_\(type)_verify_not_enabled", "MFA verification is disabled for \(factor.kind.title)")
        }
    }

    mutating func challengeFactor(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var user = try authenticateForFactors(call).user
        let index = try factor(call.parts[1], of: user)
        let kind = user.factors[index].kind
        try checkUsable(user.factors[index])
        var code: String?
        if kind == .phone {
            let channel = try channel(call.body().text("channel"))
            try checkInterval(
                since: user.factors[index].lastChallengedAt, settings.smsInterval, "over_sms_send_rate_limit",
                at: call.now)
            let sent = newCode()
            code = sent
            deliver(
                SentMessage(
                    number: nextMessageNumber, at: call.now, to: user.factors[index].phone, channel: channel,
                    type: "mfa", code: sent))
        }
        var webAuthn: WebAuthnQuestion?
        if kind == .webAuthn {
            // Its contents are ignored; the server wants a body all the same.
            _ = try call.body()
            webAuthn = WebAuthnQuestion(user.factors[index], of: user, by: settings.relyingParty)
        }
        user.factors[index].lastChallengedAt = instant(call.now)
        save(user, at: call.now)
        let id = SupabaseText.uuid()
        challenges = challenges.filter { $0.value.expiresAt + SupabaseProject.challengeLifetime > call.now }
        challenges[id] = SupabaseFactorChallenge(
            factorID: call.parts[1], address: call.address,
            expiresAt: call.now + SupabaseProject.challengeLifetime, code: code, webAuthn: webAuthn)
        var members = JSONObject([
            .init("id", .string(id)), .init("type", .string(kind.rawValue)),
            .init("expires_at", .integer(call.now + SupabaseProject.challengeLifetime)),
        ])
        members["webauthn"] = webAuthn?.json
        return SupabaseResponses.json(.object(members))
    }

    mutating func verifyFactor(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var (user, session) = try authenticateForFactors(call)
        let index = try factor(call.parts[1], of: user)
        try checkUsable(user.factors[index])
        let body = try call.body()
        let (challengeID, code) = (try body.text("challenge_id"), try body.text("code"))
        guard SupabaseText.isUUID(challengeID) else { throw .validation("challenge_id must be an UUID") }
        let answer = user.factors[index].kind == .webAuthn ? try WebAuthnResponse(reading: body) : nil
        guard let challenge = challenges[challengeID], challenge.factorID == user.factors[index].id else {
            throw SupabaseErrorResponse(
                422, "mfa_factor_not_found", "MFA factor with the provided challenge ID not found")
        }
        guard !challenge.isAnswered, challenge.address == call.address else {
            throw SupabaseErrorResponse(
                422, "mfa_ip_address_mismatch", "Challenge and verify IP addresses mismatch.")
        }
        guard call.now <= challenge.expiresAt else {
            throw SupabaseErrorResponse(
                422, "mfa_challenge_expired",
                "MFA challenge \(challengeID) has expired, verify against another challenge or create a new challenge.")
        }
        let factor = user.factors[index]
        if let answer, let question = challenge.webAuthn {
            let credential = try question.credential(by: answer, of: user)
            if question.makesKey { user.factors[index].credential = credential }
            user.factors[index].lastResponse = answer.json(challenge: challengeID, factor: factor.id)
            challenges[challengeID] = nil
        } else {
            let isRight =
                challenge.code.map { $0 == code }
                ?? SupabaseTOTP.accepts(code, secret: factor.secret, at: call.now)
            guard isRight else {
                throw SupabaseErrorResponse(
                    422, "mfa_verification_failed",
                    factor.kind == .totp ? "Invalid TOTP code entered" : "Invalid MFA Phone code entered")
            }
            challenges[challengeID]?.isAnswered = true
        }
        if !factor.isVerified {
            user.factors[index].isVerified = true
            user.factors[index].updatedAt = instant(call.now)
        }
        user.factors.removeAll { !$0.isVerified && $0.kind == factor.kind }
        save(user, at: call.now)
        raise(&session, by: factor, at: call.now)
        endSessions { $0.userID == user.id && $0.id != session.id && $0.level == "aal1" }
        return try tokenResponse(session.id, at: call.now)
    }

    /// The session has two proofs now, and another refresh token. The counter moves by two, so that the old token is
    /// not taken for one whose response was lost.
    private mutating func raise(_ session: inout SupabaseSession, by factor: SupabaseFactor, at now: Int) {
        let method = factor.kind == .totp ? "totp" : "mfa/\(factor.kind.rawValue)"
        session.proofs.removeAll { $0.method == method }
        session.proofs.insert(.init(method: method, at: now), at: 0)
        session.factorID = factor.id
        if session.isCounted {
            session.counter += 2
        } else {
            session.swap(session.activeRow?.token, at: now, kind: settings.refreshTokens)
            rowOwners[session.currentToken] = session.id
        }
        sessions[session.id] = session
    }

    mutating func removeFactor(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var (user, session) = try authenticateForFactors(call)
        let index = try factor(call.parts[1], of: user)
        let factor = user.factors[index]
        if factor.isVerified, session.level != "aal2" {
            throw SupabaseErrorResponse(422, "insufficient_aal", "AAL2 required to unenroll verified factor")
        }
        user.factors.remove(at: index)
        save(user, at: call.now)
        for (id, other) in sessions where other.factorID == factor.id {
            sessions[id]?.proofs.removeAll { $0.isSecondFactor }
            sessions[id]?.factorID = nil
        }
        return SupabaseResponses.json(["id": .string(factor.id)])
    }
}
