internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

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
struct SentMessage: JSONConvertible {
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

    /// The channel in words.
    var kind: String { channel == "email" ? "Mail" : channel == "sms" ? "SMS" : "WhatsApp message" }

    /// For a terminal: the receiver, what it is about, the code, and the link if there is one.
    var line: String { "\(kind) to \(to) (\(type)): \(code)" + (link.map { "\n  \($0)" } ?? "") }

    var jsonValue: JSON {
        .object([
            "number": number, "at": at, "to": to, "channel": channel, "type": type, "code": code,
            "token_hash": tokenHash, "link": link,
        ])
    }
}

struct SupabaseMail {
    private static let maxMessages = 10_000
    private(set) var messages: [SentMessage] = []
    /// For a terminal: what was asked for and not sent, although the response hides that.
    private var unsent: [String] = []
    private var limits = SupabaseLimits()

    func messages(after number: Int) -> ArraySlice<SentMessage> {
        messages[(messages.lastIndex { $0.number <= number }.map { $0 + 1 } ?? 0)...]
    }

    mutating func omit(_ kind: String = "mail", to receiver: String, since reason: String) {
        unsent.append("no \(kind) to \(receiver): \(reason)")
    }

    mutating func takeUnsent() -> [String] {
        defer { unsent = [] }
        return unsent
    }

    private mutating func deliver(
        _ code: String, _ type: String, to receiver: String, by channel: String, hash: String? = nil,
        link: String? = nil, at now: Int
    ) {
        if messages.count >= Self.maxMessages { messages.removeFirst(Self.maxMessages / 10) }
        messages.append(
            SentMessage(
                number: (messages.last?.number ?? 0) + 1, at: now, to: receiver, channel: channel, type: type,
                code: code, tokenHash: hash, link: link))
    }

    private func newCode(_ call: SupabaseCall) -> String {
        SupabaseText.random(call.settings.otpLength, from: "0123456789")
    }

    mutating func sendFactorCode(
        to phone: String, by channel: String, since last: SupabaseInstant?, _ call: SupabaseCall
    ) throws -> String {
        try checkInterval(since: last, call.settings.smsInterval, "over_sms_send_rate_limit", at: call.now)
        let code = newCode(call)
        deliver(code, "mfa", to: phone, by: channel, at: call.now)
        return code
    }

    /// Mails a code and a link. The link leads to this server, which redirects to where the request wants to go.
    mutating func mail(
        _ kind: SentCode.Kind, type: String, to address: String, about user: inout SupabaseUser,
        isPKCE: Bool, _ call: SupabaseCall
    ) throws {
        try checkInterval(
            since: user.sentAt[kind], call.settings.mailInterval, "over_email_send_rate_limit", at: call.now)
        if let limit = call.settings.mailLimit, !call.settings.autoconfirm {
            try require(
                limits.take("mails", limit: limit, seconds: 3_600, at: call.now), 429, "over_email_send_rate_limit",
                "email rate limit exceeded")
        }
        let code = newCode(call)
        // SHA-224 on the real server. Here only the length is the same.
        let digest = Digest.hex(Digest.sha256(address + code + SupabaseText.uuid()).prefix(28))
        let hash = (isPKCE ? "pkce_" : "") + digest
        user.sentCodes[kind] = SentCode(code: code, hash: hash, sentAt: call.now)
        user.sentAt[kind] = call.instant()
        let target = call.redirectTarget
        let written = target.contains { "&=#".contains($0) } ? FormEncoding.escape(target, spaceAsPlus: true) : target
        let link = call.authURL + "/verify?token=\(hash)&type=\(type)&redirect_to=\(written)"
        if type == "reauthentication" { return deliver(code, type, to: address, by: "email", at: call.now) }
        deliver(code, type, to: address, by: "email", hash: hash, link: link, at: call.now)
    }

    /// Sends mail to both addresses, if the project requires that and there are two.
    mutating func mailChange(of user: inout SupabaseUser, isPKCE: Bool, _ call: SupabaseCall) throws {
        user.emailChangeConfirmations = 0
        if call.settings.securesEmailChange, !user.email.isEmpty {
            try mail(.emailChangeCurrent, type: "email_change", to: user.email, about: &user, isPKCE: isPKCE, call)
        }
        try mail(.emailChangeNew, type: "email_change", to: user.newEmail, about: &user, isPKCE: isPKCE, call)
    }

    mutating func message(
        _ kind: SentCode.Kind, type: String, to phone: String, by channel: String,
        about user: inout SupabaseUser, _ call: SupabaseCall
    ) throws {
        try checkInterval(since: user.sentAt[kind], call.settings.smsInterval, "over_sms_send_rate_limit", at: call.now)
        let code = newCode(call)
        user.sentCodes[kind] = SentCode(code: code, hash: SupabaseText.uuid(), sentAt: call.now)
        user.sentAt[kind] = call.instant()
        deliver(code, type, to: phone, by: channel, at: call.now)
    }

    private func checkInterval(since last: SupabaseInstant?, _ interval: Int, _ code: String, at now: Int) throws {
        guard let last, now < last.seconds + interval else { return }
        let seconds = last.seconds + interval - now
        throw SupabaseError(429, code, "For security purposes, you can only request this after \(seconds) seconds.")
    }
}

/// What a test reads in the user's place, and the form of faults at a project.
extension SandboxProvider {
    /// `GET inbox`: the same for a person, the newest message first.
    func inbox() -> ServerResponse { Pages.inbox(withState { $0.supabase.mail.messages.reversed() }) }

    /// `GET mailbox` and `GET messages`: what was sent by mail, and by phone, in order. `to` and `type` select some.
    func sentMessages(_ request: SandboxRequest, isMail: Bool) -> ServerResponse {
        let wanted = Parameters(request.query)
        let sentMessages = withState { state in
            state.supabase.mail.messages.filter { message in
                (message.channel == "email") == isMail && (wanted["to"] ?? message.to) == message.to
                    && (wanted["type"] ?? message.type) == message.type
            }
        }
        return Responses.json(["letters": sentMessages])
    }
}

extension Fault {
    /// An error in the form that the request asked for, or with the given `body`; nil for faults without a form.
    func supabaseResponse(to request: SandboxRequest, _ endpoint: Endpoint) -> ServerResponse? {
        guard endpoint.isSupabase, kind == .error else { return nil }
        let status = status ?? 400
        if let body { return SupabaseResponses.json(value: body, status: status) }
        return SupabaseResponses.refusal(
            SupabaseError(status, code, message ?? "This is a fault."),
            version: request.fields["X-Supabase-Api-Version"])
    }
}
