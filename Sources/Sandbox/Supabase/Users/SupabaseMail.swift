internal import Cryptography
internal import HTTPMessages
internal import StrictJSON

/// A code that was sent to a user, and the link with the same effect. Only the newest of each kind is valid.
struct SentCode {
    enum Kind: String {
        case confirmation, recovery
        case emailChangeCurrent = "email_change_current"
        case emailChangeNew = "email_change_new"
        case phoneConfirmation = "phone_confirmation"
        case phoneChange = "phone_change"
        case reauthentication
    }

    let code: String
    /// What the link contains; begins with `pkce_` if it is to yield a code.
    let hash: String
    let sentAt: Int
}

/// A message that a user has received. A test reads it in the user's place.
struct SentMessage {
    let number: Int
    let at: Int
    let to: String
    /// `email`, `sms` or `whatsapp`.
    let channel: String
    /// `signup`, `magiclink`, `recovery`, `email_change`, `reauthentication`, `sms`, `phone_change`, `mfa`.
    let type: String
    let code: String
    var tokenHash: String?
    var link: String?

    var json: JSON {
        var members = JSONObject([
            .init("number", .integer(number)), .init("at", .integer(at)), .init("to", .string(to)),
            .init("channel", .string(channel)), .init("type", .string(type)), .init("code", .string(code)),
        ])
        if let tokenHash { members["token_hash"] = .string(tokenHash) }
        if let link { members["link"] = .string(link) }
        return .object(members)
    }
}

/// How many requests a client may still send.
struct SupabaseBucket {
    var tokens: Double
    var at: Int
}

extension SupabaseProject {
    private static let maxMessages = 10_000

    mutating func deliver(_ message: SentMessage) {
        if sentMessages.count >= Self.maxMessages { sentMessages.removeFirst(Self.maxMessages / 10) }
        sentMessages.append(message)
    }

    var nextMessageNumber: Int { (sentMessages.last?.number ?? 0) + 1 }

    func newCode() -> String { SupabaseText.random(settings.otpLength, from: "0123456789") }

    /// Mails a code and a link. The link leads to this server, which redirects to where the request wants to go.
    mutating func mail(
        _ kind: SentCode.Kind, type: String, to address: String, about user: inout SupabaseUser,
        isPKCE: Bool, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        try checkInterval(since: user.sentAt[kind], settings.mailInterval, "over_email_send_rate_limit", at: call.now)
        if let limit = settings.mailLimit, !settings.autoconfirm {
            guard take("mails", limit: limit, seconds: 3_600, at: call.now) else {
                throw SupabaseErrorResponse(429, "over_email_send_rate_limit", "email rate limit exceeded")
            }
        }
        let code = newCode()
        // SHA-224 on the real server. Here only the length is the same.
        let digest = Digest.hex(Digest.sha256(address + code + SupabaseText.uuid()).prefix(28))
        let hash = (isPKCE ? "pkce_" : "") + digest
        user.sentCodes[kind] = SentCode(code: code, hash: hash, sentAt: call.now)
        user.sentAt[kind] = instant(call.now)
        let target = redirectTarget(call)
        let written = target.contains { "&=#".contains($0) } ? FormEncoding.escape(target, spaceAsPlus: true) : target
        let link = authURL + "/verify?token=\(hash)&type=\(type)&redirect_to=\(written)"
        deliver(
            SentMessage(
                number: nextMessageNumber, at: call.now, to: address, channel: "email", type: type, code: code,
                tokenHash: type == "reauthentication" ? nil : hash, link: type == "reauthentication" ? nil : link))
    }

    /// Sends a code by `sms` or `whatsapp`.
    mutating func message(
        _ kind: SentCode.Kind, type: String, to phone: String, by channel: String,
        about user: inout SupabaseUser, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) {
        try checkInterval(since: user.sentAt[kind], settings.smsInterval, "over_sms_send_rate_limit", at: call.now)
        let code = newCode()
        user.sentCodes[kind] = SentCode(code: code, hash: SupabaseText.uuid(), sentAt: call.now)
        user.sentAt[kind] = instant(call.now)
        deliver(
            SentMessage(
                number: nextMessageNumber, at: call.now, to: phone, channel: channel, type: type, code: code))
    }

    func checkInterval(
        since last: SupabaseInstant?, _ interval: Int, _ code: String, at now: Int
    ) throws(SupabaseErrorResponse) {
        guard let last, now < last.seconds + interval else { return }
        let seconds = last.seconds + interval - now
        throw SupabaseErrorResponse(
            429, code, "For security purposes, you can only request this after \(seconds) seconds.")
    }

    /// Takes a token from a bucket that is filled up within so many seconds; false if there is none.
    mutating func take(_ name: String, limit: Int, seconds: Int, at now: Int) -> Bool {
        var bucket = buckets[name] ?? SupabaseBucket(tokens: Double(limit), at: now)
        let gained = Double(now - bucket.at) * Double(limit) / Double(seconds)
        bucket.tokens = min(Double(limit), bucket.tokens + gained)
        bucket.at = now
        defer { buckets[name] = bucket }
        guard bucket.tokens >= 1 else { return false }
        bucket.tokens -= 1
        return true
    }

    /// Stores a challenge until the mail's link is opened.
    mutating func begin(_ method: String, for userID: String, _ challenge: SupabaseChallenge?, _ call: SupabaseCall) {
        guard let challenge else { return }
        var flow = SupabaseFlow(
            provider: "email", method: method, challenge: challenge, redirectTo: redirectTarget(call),
            createdAt: call.now)
        flow.userID = userID
        add(flow)
    }

    mutating func add(_ flow: SupabaseFlow) {
        if flows.count >= 10_000 { flows.removeFirst(1_000) }
        flows.append(flow)
    }

    /// `sms` unless the request names another channel.
    func channel(_ name: String) throws(SupabaseErrorResponse) -> String {
        guard ["", "sms", "whatsapp"].contains(name) else {
            throw .validation(
                "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or"
                    + " Twilio Verify is used as the provider.")
        }
        return name.isEmpty ? "sms" : name
    }
}
