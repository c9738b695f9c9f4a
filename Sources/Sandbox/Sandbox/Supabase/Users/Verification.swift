internal import LocalHTTP
internal import RingbackBase

/// `/verify`: the link in a mail (GET, which returns a redirect) and the typed code (POST, which returns a session).
extension SupabaseCodes {
    private static let deadLink = SupabaseError(403, "otp_expired", "Email link is invalid or has expired")
    private static let deadCode = SupabaseError(403, "otp_expired", "Token has expired or is invalid")
    private static let halfway =
        "Confirmation link accepted. Please proceed to confirm link sent to the other email"

    // MARK: Typed

    func verify(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
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
            guard let (user, kind) = SupabaseCodes.find(hash: hash, type: type, accounts.users) else {
                throw SupabaseCodes.deadLink
            }
            return try redeem(kind, of: user, SupabaseCodes.deadLink, call, &accounts)
        }
        if ["sms", "phone_change"].contains(type) {
            guard !phone.isEmpty, email.isEmpty else {
                throw .validation("Only an email address or phone number should be provided on verify")
            }
            phone = try SupabaseText.number(phone)
        } else {
            guard !email.isEmpty, phone.isEmpty else {
                throw .validation("Only an email address or phone number should be provided on verify")
            }
            guard let address = SupabaseText.email(email) else {
                throw .validation("Unable to validate email address: invalid format", status: 422)
            }
            email = address
        }
        guard
            let (user, kind) = SupabaseCodes.find(
                code: token, type: type, email: email, phone: phone, accounts.users)
        else {
            throw SupabaseCodes.deadCode
        }
        return try redeem(kind, of: user, SupabaseCodes.deadCode, call, &accounts)
    }

    private func redeem(
        _ kind: SentCode.Kind, of user: SupabaseUser, _ refusal: SupabaseError, _ call: SupabaseCall,
        _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        guard try use(kind, of: user, refusal, call, &accounts.users) else {
            return SupabaseResponses.json(["code": "200", "msg": .string(SupabaseCodes.halfway)])
        }
        return try accounts.signIn(user.id, by: "otp", call)
    }

    // MARK: By link

    func followLink(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        guard let hash = call.query("token") else {
            throw .validation("Verify requires a token or a token hash")
        }
        guard let type = call.query("type") else { throw .validation("Verify requires a verification type") }
        let target = call.redirectTarget
        let isPKCE = hash.hasPrefix("pkce_")
        do throws(SupabaseError) {
            guard let (user, kind) = SupabaseCodes.find(hash: hash, type: type, accounts.users), kind.isMail else {
                throw SupabaseCodes.deadLink
            }
            guard try use(kind, of: user, SupabaseCodes.deadLink, call, &accounts.users) else {
                return SupabaseResponses.redirect(to: SupabaseCodes.halfwayURL(target, isPKCE: isPKCE), status: 303)
            }
            let location =
                isPKCE
                ? SupabaseRedirects.with(code: try flows.openLink(of: user.id, type, at: call.now), target)
                : try SupabaseCodes.implicit(user.id, type, target, call, &accounts)
            return SupabaseResponses.redirect(to: location, status: 303)
        } catch {
            return SupabaseResponses.redirect(
                to: SupabaseRedirects.refusal(error, at: target, inQuery: isPKCE, isCallback: false), status: 303)
        }
    }

    private static func implicit(
        _ userID: String, _ type: String, _ target: String, _ call: SupabaseCall,
        _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> String {
        let tokens = try accounts.tokens(accounts.open(userID, by: "otp", call), call)
        return SupabaseRedirects.with(tokens: tokens, extra: [("type", type)], target)
    }

    private static func halfwayURL(_ target: String, isPKCE: Bool) -> String {
        guard var url = SupabaseURL(target) else { return target }
        if isPKCE { url.merge([("message", SupabaseCodes.halfway)]) }
        url.setFragment([("message", SupabaseCodes.halfway), ("sb", "")])
        return url.text
    }

    // MARK: Sent codes

    private static func find(
        hash: String, type: String, _ users: SupabaseUsers
    ) -> (SupabaseUser, SentCode.Kind)? {
        let kinds = SentCode.Kind.kinds(of: type).filter(\.isMail)
        for user in users.all {
            if let kind = kinds.first(where: { user.sentCodes[$0]?.hash == hash }) { return (user, kind) }
        }
        return nil
    }

    private static func find(
        code: String, type: String, email: String, phone: String, _ users: SupabaseUsers
    ) -> (SupabaseUser, SentCode.Kind)? {
        for user in users.all {
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
    private func use(
        _ kind: SentCode.Kind, of user: SupabaseUser, _ refusal: SupabaseError, _ call: SupabaseCall,
        _ users: inout SupabaseUsers
    ) throws(SupabaseError) -> Bool {
        let now = call.now
        var user = user
        let lifetime = kind.isMail ? call.settings.otpLifetime : call.settings.smsLifetime
        guard let sentCode = user.sentCodes[kind], now - sentCode.sentAt <= lifetime else { throw refusal }
        if user.isBanned(at: now) { throw SupabaseError(403, "user_banned", "User is banned") }
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
