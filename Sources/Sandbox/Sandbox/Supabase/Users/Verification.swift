internal import LocalHTTP
internal import RingbackBase

/// `/verify`: the link in a mail (GET, which returns a redirect) and the typed code (POST, which returns a session).
extension SupabaseProject {
    private static let deadLink = SupabaseError(403, "otp_expired", "Email link is invalid or has expired")
    private static let deadCode = SupabaseError(403, "otp_expired", "Token has expired or is invalid")
    private static let halfway = "Confirmation link accepted. Please proceed to confirm link sent to the other email"

    mutating func verify(_ call: SupabaseCall) throws -> ServerResponse {
        let body = try call.body()
        let type = try body.text("type")
        try require(!type.isEmpty, "Verify requires a verification type")
        let (token, hash) = (try body.text("token"), try body.text("token_hash"))
        try require(!token.isEmpty || !hash.isEmpty, "Verify requires a token or a token hash")
        try require(token.isEmpty || hash.isEmpty, "Verify requires either a token or a token hash")
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        if !hash.isEmpty {
            let redirect = try body.text("redirect_to")
            try require(
                email.isEmpty && phone.isEmpty && redirect.isEmpty, "Only the token_hash and type should be provided")
            return try redeem(find(hash: hash, type: type), Self.deadLink, call)
        }
        let isPhone = ["sms", "phone_change"].contains(type)
        try require(
            isPhone ? !phone.isEmpty && email.isEmpty : !email.isEmpty && phone.isEmpty,
            "Only an email address or phone number should be provided on verify")
        let receiver = try isPhone ? SupabaseText.number(phone) : SupabaseText.address(email, status: 422)
        return try redeem(find(code: token, type: type, receiver), Self.deadCode, call)
    }

    private mutating func redeem(
        _ found: (SupabaseUser, SentCode.Kind)?, _ refusal: SupabaseError, _ call: SupabaseCall
    ) throws -> ServerResponse {
        guard let (user, kind) = found else { throw refusal }
        guard try use(kind, of: user, refusal, call) else {
            return SupabaseResponses.json(["code": "200", "msg": Self.halfway])
        }
        return try signIn(user.id, by: "otp", call)
    }

    mutating func followLink(_ call: SupabaseCall) throws -> ServerResponse {
        let hash = try unwrap(call.query("token"), "Verify requires a token or a token hash")
        let type = try unwrap(call.query("type"), "Verify requires a verification type")
        let target = call.redirectTarget
        let isPKCE = hash.hasPrefix("pkce_")
        do {
            guard let (user, kind) = find(hash: hash, type: type), kind.isMail else { throw Self.deadLink }
            guard try use(kind, of: user, Self.deadLink, call) else {
                return SupabaseResponses.redirect(to: Self.halfwayURL(target, isPKCE: isPKCE), status: 303)
            }
            if isPKCE {
                let code = try flows.openLink(of: user.id, type, at: call.now)
                return SupabaseResponses.redirect(to: SupabaseRedirects.with(code: code, target), status: 303)
            }
            let tokens = try tokens(open(user.id, by: "otp", call), call)
            return SupabaseResponses.redirect(
                to: SupabaseRedirects.with(tokens: tokens, extra: [("type", type)], target), status: 303)
        } catch let error as SupabaseError {
            return SupabaseResponses.redirect(
                to: SupabaseRedirects.refusal(error, at: target, inQuery: isPKCE, isCallback: false), status: 303)
        }
    }

    private static func halfwayURL(_ target: String, isPKCE: Bool) -> String {
        guard var url = SupabaseURL(target) else { return target }
        if isPKCE { url.merge([("message", Self.halfway)]) }
        url.setFragment([("message", Self.halfway), ("sb", "")])
        return url.text
    }

    private func find(hash: String, type: String) -> (SupabaseUser, SentCode.Kind)? {
        let kinds = SentCode.Kind.kinds(of: type).filter(\.isMail)
        for user in users.all {
            if let kind = kinds.first(where: { user.sentCodes[$0]?.hash == hash }) { return (user, kind) }
        }
        return nil
    }

    private func find(code: String, type: String, _ receiver: String) -> (SupabaseUser, SentCode.Kind)? {
        for user in users.all {
            for kind in SentCode.Kind.kinds(of: type) {
                let place =
                    switch kind {
                    case .confirmation, .recovery, .emailChangeCurrent: user.email
                    case .emailChangeNew: user.newEmail
                    case .phoneConfirmation: user.phone
                    case .phoneChange: user.newPhone
                    case .reauthentication: ""
                    }
                if receiver == place, user.sentCodes[kind]?.code == code { return (user, kind) }
            }
        }
        return nil
    }

    /// Uses up a code or a link. False for the first of two confirmations.
    private mutating func use(
        _ kind: SentCode.Kind, of user: SupabaseUser, _ refusal: SupabaseError, _ call: SupabaseCall
    ) throws -> Bool {
        let now = call.now
        var user = user
        let lifetime = kind.isMail ? call.settings.otpLifetime : call.settings.smsLifetime
        guard let sentCode = user.sentCodes[kind], now - sentCode.sentAt <= lifetime else { throw refusal }
        try user.checkBan(at: now)
        user.sentCodes[kind] = nil
        var isComplete = true
        switch kind {
        case .confirmation, .recovery: user.confirmEmail(at: now)
        case .phoneConfirmation: user.confirmPhone(at: now)
        case .emailChangeCurrent, .emailChangeNew:
            let isSecure = call.settings.securesEmailChange && !user.email.isEmpty
            user.emailChangeConfirmations += 1
            isComplete = !isSecure || user.emailChangeConfirmations >= 2
            if isComplete { user.changeEmail(at: now) }
        case .phoneChange: user.changePhone(at: now)
        case .reauthentication: throw refusal
        }
        users.save(user, at: now)
        return isComplete
    }
}

extension SentCode.Kind {
    var isMail: Bool { [.confirmation, .recovery, .emailChangeCurrent, .emailChangeNew].contains(self) }

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
