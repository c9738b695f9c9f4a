internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// A challenge for a second factor: it accepts one response, from the address that asked for it, within five minutes.
struct SupabaseFactorChallenge {
    let factorID: String
    let address: String
    let expiresAt: Int
    let code: String?
    let webAuthn: WebAuthnQuestion?
    var isAnswered = false
}

/// `/factors`: enrolling, challenging, verifying and removing second factors.
extension SupabaseProject {
    /// Of challenges for factors and for passkeys.
    static let challengeLifetime = 300
    private static let maxFactors = 10

    mutating func enroll(_ call: SupabaseCall) throws -> ServerResponse {
        var (user, session) = try authenticateNamed(call)
        let body = try call.body()
        let name = try body.text("friendly_name")
        let kind = try Self.factorKind(body.text("factor_type"), call.settings)
        let phone = kind == .phone ? try SupabaseText.number(body.text("phone")) : ""
        user.factors.removeAll { !$0.isVerified && call.now > $0.createdAt.seconds + Self.challengeLifetime }
        try Self.checkEnrolling(user, session, name: name, phone: phone)
        let now = call.instant()
        let factor = SupabaseFactor(
            id: SupabaseText.uuid(), kind: kind, name: name, phone: phone,
            secret: kind == .totp ? RandomToken.bytes(20) : [], createdAt: now, updatedAt: now)
        user.factors.append(factor)
        users.save(user, at: call.now)
        let issuer = try body.text("issuer")
        let site = SupabaseURL(call.settings.siteURL)?.host ?? ""
        return SupabaseResponses.json([
            "id": factor.id, "type": kind.rawValue, "friendly_name": name, "phone": kind == .phone ? phone : nil,
            "totp": kind == .totp ? Self.totp(factor, issuer.isEmpty ? site : issuer, user) : nil,
        ])
    }

    private static func factorKind(_ type: String, _ settings: SupabaseSettings) throws -> SupabaseFactor.Kind {
        let kind = try unwrap(SupabaseFactor.Kind(rawValue: type), "factor_type needs to be totp, phone, or webauthn")
        try require(
            settings.factors.contains(type), 422, "mfa_\(type)_enroll_not_enabled",
            "MFA enroll is disabled for \(kind.title)")
        return kind
    }

    private static func checkEnrolling(
        _ user: SupabaseUser, _ session: SupabaseSession, name: String, phone: String
    ) throws {
        try require(
            phone.isEmpty || !user.factors.contains { $0.isVerified && $0.phone == phone }, 422,
            "mfa_verified_factor_exists",
            "A verified phone factor already exists, unenroll the existing factor to continue")
        try require(
            !user.factors.contains { $0.name == name }, 422, "mfa_factor_name_conflict",
            "A factor with the friendly name \"\(name)\" for this user already exists")
        try require(
            user.factors.count < Self.maxFactors, 422, "too_many_enrolled_mfa_factors",
            "Maximum number of verified factors reached, unenroll to continue")
        try session.checkLevel(of: user, 403, "AAL2 required to enroll a new factor")
    }

    private static func totp(_ factor: SupabaseFactor, _ issuer: String, _ user: SupabaseUser) -> JSONObject {
        let secret = SupabaseTOTP.base32(factor.secret)
        let account = user.email.isEmpty ? user.phone : user.email
        let uri =
            "otpauth://totp/\(FormEncoding.escape(issuer)):\(FormEncoding.escape(account))?algorithm=SHA1&digits=6"
            + "&issuer=\(FormEncoding.escape(issuer))&period=30&secret=\(secret)"
        return ["qr_code": SupabaseTOTP.picture, "secret": secret, "uri": uri] as JSONObject
    }

    private static func factorIndex(_ id: String, of user: SupabaseUser) throws -> Int {
        try require(SupabaseText.isUUID(id), "factor_id must be an UUID", status: 404)
        return try unwrap(user.factors.firstIndex { $0.id == id }, 404, "mfa_factor_not_found", "Factor not found")
    }

    /// Factors of a kind that was disabled stay, but cannot be used.
    private static func checkUsable(_ factor: SupabaseFactor, _ settings: SupabaseSettings) throws {
        let type = factor.kind.rawValue
        try require(
            settings.factors.contains(type), 422, "mfa_\(type)_verify_not_enabled",
            "MFA verification is disabled for \(factor.kind.title)")
    }

    mutating func challengeFactor(_ call: SupabaseCall) throws -> ServerResponse {
        var user = try authenticateNamed(call).user
        let index = try Self.factorIndex(call.parts[1], of: user)
        let kind = user.factors[index].kind
        try Self.checkUsable(user.factors[index], call.settings)
        var code: String?
        if kind == .phone {
            let channel = try SupabaseText.channel(call.body().text("channel"))
            code = try mail.sendFactorCode(
                to: user.factors[index].phone, by: channel, since: user.factors[index].lastChallengedAt, call)
        }
        var webAuthn: WebAuthnQuestion?
        if kind == .webAuthn {
            // Its contents are ignored; the server wants a body all the same.
            _ = try call.body()
            webAuthn = WebAuthnQuestion(user.factors[index], of: user, by: call.settings.relyingParty)
        }
        user.factors[index].lastChallengedAt = call.instant()
        users.save(user, at: call.now)
        let id = SupabaseText.uuid()
        factorChallenges = factorChallenges.filter { $0.value.expiresAt + Self.challengeLifetime > call.now }
        factorChallenges[id] = SupabaseFactorChallenge(
            factorID: call.parts[1], address: call.address,
            expiresAt: call.now + Self.challengeLifetime, code: code, webAuthn: webAuthn)
        return SupabaseResponses.json([
            "id": id, "type": kind.rawValue, "expires_at": call.now + Self.challengeLifetime,
            "webauthn": webAuthn?.members,
        ])
    }

    mutating func verifyFactor(_ call: SupabaseCall) throws -> ServerResponse {
        var (user, session) = try authenticateNamed(call)
        let index = try Self.factorIndex(call.parts[1], of: user)
        try Self.checkUsable(user.factors[index], call.settings)
        let body = try call.body()
        let (challengeID, code) = (try body.text("challenge_id"), try body.text("code"))
        try require(SupabaseText.isUUID(challengeID), "challenge_id must be an UUID")
        let answer = user.factors[index].kind == .webAuthn ? try WebAuthnResponse(reading: body) : nil
        let known = factorChallenges[challengeID]
        let challenge = try unwrap(
            known?.factorID == user.factors[index].id ? known : nil, 422, "mfa_factor_not_found",
            "MFA factor with the provided challenge ID not found")
        try require(
            !challenge.isAnswered && challenge.address == call.address, 422, "mfa_ip_address_mismatch",
            "Challenge and verify IP addresses mismatch.")
        try require(
            call.now <= challenge.expiresAt, 422, "mfa_challenge_expired",
            "MFA challenge \(challengeID) has expired, verify against another challenge or create a new challenge.")
        let factor = user.factors[index]
        if let answer, let question = challenge.webAuthn {
            let credential = try question.credential(by: answer, of: user)
            if question.makesKey { user.factors[index].credential = credential }
            user.factors[index].lastResponse = answer.members(challenge: challengeID, factor: factor.id)
            factorChallenges[challengeID] = nil
        } else {
            let isRight =
                challenge.code.map { $0 == code } ?? SupabaseTOTP.accepts(code, secret: factor.secret, at: call.now)
            try require(
                isRight, 422, "mfa_verification_failed",
                factor.kind == .totp ? "Invalid TOTP code entered" : "Invalid MFA Phone code entered")
            factorChallenges[challengeID]?.isAnswered = true
        }
        if !factor.isVerified {
            user.factors[index].isVerified = true
            user.factors[index].updatedAt = call.instant()
        }
        user.factors.removeAll { !$0.isVerified && $0.kind == factor.kind }
        users.save(user, at: call.now)
        sessions.raise(session.id, by: factor, call.settings.refreshTokens, at: call.now)
        sessions.end { $0.userID == user.id && $0.id != session.id && $0.level == "aal1" }
        return try tokenResponse(session.id, call)
    }

    mutating func removeFactor(_ call: SupabaseCall) throws -> ServerResponse {
        var (user, session) = try authenticateNamed(call)
        let index = try Self.factorIndex(call.parts[1], of: user)
        let factor = user.factors[index]
        try require(
            session.level == "aal2" || !factor.isVerified, 422, "insufficient_aal",
            "AAL2 required to unenroll verified factor")
        user.factors.remove(at: index)
        users.save(user, at: call.now)
        sessions.lower(factor.id)
        return SupabaseResponses.json(["id": factor.id])
    }
}

/// Codes of a device (RFC 6238): SHA-1, six digits, 30 seconds; one step before and after is accepted.
enum SupabaseTOTP {
    static func accepts(_ code: String, secret: [UInt8], at now: Int) -> Bool {
        (-1...1).contains { code == self.code(secret, counter: now / 30 + $0) }
    }

    /// RFC 4226 section 5.3.
    static func code(_ secret: [UInt8], counter: Int, digits: Int = 6) -> String {
        let message = (0..<8).reversed().map { UInt8(truncatingIfNeeded: counter >> ($0 * 8)) }
        let digest = HMAC.code(message, secret) { Digest.sha1($0) }
        let start = Int(digest[19] & 0x0F)
        let number = digest[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } & 0x7FFF_FFFF
        var limit = 1
        for _ in 0..<digits { limit *= 10 }
        let text = String(number % limit)
        return String(repeating: "0", count: digits - text.count) + text
    }

    /// RFC 4648 section 6, without padding.
    static func base32(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        var text = ""
        var (buffer, bits) = (0, 0)
        for byte in bytes {
            buffer = (buffer << 8 | Int(byte)) & 0xFFF_FFFF
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(letters[buffer >> bits & 31])
            }
        }
        if bits > 0 { text.append(letters[buffer << (5 - bits) & 31]) }
        return text
    }

    /// Takes the place of the QR code, which the real server draws as an SVG of some 300 kB: no code, but a document
    /// that a page can show, and as long, since a client has to take it.
    static let picture =
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
        + "<svg width=\"5\" height=\"5\" xmlns=\"http://www.w3.org/2000/svg\">\n"
        + "<rect x=\"0\" y=\"0\" width=\"5\" height=\"5\" style=\"fill:black\"/>\n"
        + String(repeating: " ", count: 300_000) + "\n</svg>\n"
}
