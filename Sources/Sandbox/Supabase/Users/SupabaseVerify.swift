internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// `/verify`: the link in a mail (GET, which returns a redirect) and the typed code (POST, which returns a session).
extension SupabaseProject {
    private static let deadLink = SupabaseErrorResponse(403, "otp_expired", "Email link is invalid or has expired")
    private static let deadCode = SupabaseErrorResponse(403, "otp_expired", "Token has expired or is invalid")
    private static let halfway =
        "Confirmation link accepted. Please proceed to confirm link sent to the other email"

    // MARK: Typed

    mutating func verify(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let body = try call.body()
        let type = try body.text("type")
        guard !type.isEmpty else { throw .validation("Verify requires a verification type") }
        let (token, hash) = (try body.text("token"), try body.text("token_hash"))
        guard token.isEmpty != hash.isEmpty else {
            throw .validation(
                token.isEmpty
                    ? "Verify requires a token or a token hash"
                    : "Verify requires either a token or a token hash")
        }
        var (email, phone) = (try body.text("email"), try body.text("phone"))
        if !hash.isEmpty {
            guard email.isEmpty, phone.isEmpty, try body.text("redirect_to").isEmpty else {
                throw .validation("Only the token_hash and type should be provided")
            }
            guard let (user, kind) = find(hash: hash, type: type) else { throw SupabaseProject.deadLink }
            return try redeem(kind, of: user, SupabaseProject.deadLink, call)
        }
        if ["sms", "phone_change"].contains(type) {
            guard !phone.isEmpty, email.isEmpty else {
                throw .validation("Only an email address or phone number should be provided on verify")
            }
            phone = try number(phone)
        } else {
            guard !email.isEmpty, phone.isEmpty else {
                throw .validation("Only an email address or phone number should be provided on verify")
            }
            guard let address = SupabaseText.email(email) else {
                throw .validation("Unable to validate email address: invalid format", status: 422)
            }
            email = address
        }
        guard let (user, kind) = find(code: token, type: type, email: email, phone: phone) else {
            throw SupabaseProject.deadCode
        }
        return try redeem(kind, of: user, SupabaseProject.deadCode, call)
    }

    private mutating func redeem(
        _ kind: SentCode.Kind, of user: SupabaseUser, _ refusal: SupabaseErrorResponse, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard try use(kind, of: user, refusal, at: call.now) else {
            return SupabaseResponses.json(["code": "200", "msg": .string(SupabaseProject.halfway)])
        }
        return try tokenResponse(open(user.id, by: "otp", at: call.now), at: call.now)
    }

    // MARK: By link

    mutating func followLink(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        guard let hash = call.query("token") else {
            throw .validation("Verify requires a token or a token hash")
        }
        guard let type = call.query("type") else { throw .validation("Verify requires a verification type") }
        let target = redirectTarget(call)
        let isPKCE = hash.hasPrefix("pkce_")
        do throws(SupabaseErrorResponse) {
            guard let (user, kind) = find(hash: hash, type: type), kind.isMail else {
                throw SupabaseProject.deadLink
            }
            guard try use(kind, of: user, SupabaseProject.deadLink, at: call.now) else {
                return SupabaseResponses.redirect(to: halfway(target, isPKCE: isPKCE), status: 303)
            }
            let location =
                isPKCE ? try issueCode(user.id, type, target, call) : try implicit(user.id, type, target, call)
            return SupabaseResponses.redirect(to: location, status: 303)
        } catch {
            return SupabaseResponses.redirect(
                to: SupabaseProject.refusal(error, at: target, inQuery: isPKCE, isCallback: false), status: 303)
        }
    }

    private mutating func issueCode(
        _ userID: String, _ type: String, _ target: String, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> String {
        let method = ["signup": "email/signup", "invite": "invite"][type] ?? type
        guard let index = flows.lastIndex(where: { $0.userID == userID && $0.method == method && !$0.isUsed }) else {
            throw SupabaseErrorResponse(
                400, "flow_state_not_found",
                "No associated flow state found. Please make sure to complete the flow in the same browser")
        }
        flows[index].openedAt = call.now
        return SupabaseProject.with(code: flows[index].code, target)
    }

    private mutating func implicit(
        _ userID: String, _ type: String, _ target: String, _ call: SupabaseCall
    ) throws(SupabaseErrorResponse) -> String {
        let tokens = try tokens(open(userID, by: "otp", at: call.now), at: call.now)
        return SupabaseProject.with(tokens: tokens, extra: [("type", type)], target)
    }

    private func halfway(_ target: String, isPKCE: Bool) -> String {
        guard var url = SupabaseURL(target) else { return target }
        if isPKCE { url.merge([("message", SupabaseProject.halfway)]) }
        url.setFragment([("message", SupabaseProject.halfway), ("sb", "")])
        return url.text
    }

    // MARK: Sent codes

    private func find(hash: String, type: String) -> (SupabaseUser, SentCode.Kind)? {
        let kinds = SentCode.Kind.kinds(of: type).filter(\.isMail)
        for user in users.values {
            if let kind = kinds.first(where: { user.sentCodes[$0]?.hash == hash }) { return (user, kind) }
        }
        return nil
    }

    private func find(
        code: String, type: String, email: String, phone: String
    ) -> (SupabaseUser, SentCode.Kind)? {
        for user in users.values {
            for kind in SentCode.Kind.kinds(of: type) {
                let receiver =
                    switch kind {
                    case .confirmation, .recovery, .emailChangeCurrent: user.email
                    case .emailChangeNew: user.newEmail
                    case .phoneConfirmation: user.phone
                    case .phoneChange: user.newPhone
                    case .reauthentication: ""
                    }
                if receiver == (kind.isMail ? email : phone), !receiver.isEmpty, user.sentCodes[kind]?.code == code {
                    return (user, kind)
                }
            }
        }
        return nil
    }

    /// Uses up a code or a link. False for the first of two confirmations.
    private mutating func use(
        _ kind: SentCode.Kind, of user: SupabaseUser, _ refusal: SupabaseErrorResponse, at now: Int
    ) throws(SupabaseErrorResponse) -> Bool {
        var user = user
        let lifetime = kind.isMail ? settings.otpLifetime : settings.smsLifetime
        guard let sentCode = user.sentCodes[kind], now - sentCode.sentAt <= lifetime else { throw refusal }
        if user.isBanned(at: now) { throw SupabaseErrorResponse(403, "user_banned", "User is banned") }
        user.sentCodes[kind] = nil
        var isComplete = true
        switch kind {
        case .confirmation, .recovery: confirmEmail(of: &user, at: now)
        case .phoneConfirmation: confirmPhone(of: &user, at: now)
        case .emailChangeCurrent, .emailChangeNew:
            let isSecure = settings.securesEmailChange && !user.email.isEmpty
            user.emailChangeConfirmations += 1
            isComplete = !isSecure || user.emailChangeConfirmations >= 2
            if isComplete { changeEmail(of: &user, at: now) }
        case .phoneChange: changePhone(of: &user, at: now)
        case .reauthentication: throw refusal
        }
        save(user, at: now)
        return isComplete
    }
}

extension SentCode.Kind {
    var isMail: Bool {
        switch self {
        case .confirmation, .recovery, .emailChangeCurrent, .emailChangeNew: true
        case .phoneConfirmation, .phoneChange, .reauthentication: false
        }
    }

    /// The kinds that a request's `type` may stand for.
    fileprivate static func kinds(of type: String) -> [SentCode.Kind] {
        switch type {
        case "signup", "invite": [.confirmation]
        case "recovery", "magiclink": [.recovery]
        case "email": [.confirmation, .recovery]
        case "email_change": [.emailChangeCurrent, .emailChangeNew]
        case "sms": [.phoneConfirmation]
        case "phone_change": [.phoneChange]
        default: []
        }
    }
}
