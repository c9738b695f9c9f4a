internal import RingbackBase

/// What a control document says under `supabase`: settings by the names that the response shows, and actions.
/// `configuration` comes first and sets everything to the values of A or B.
/// Actions: `users` adds users (`email`, `phone`, `password`, `data`, `confirmed`), `ban`, `unban` and `delete_users`
/// take addresses, `end_sessions` takes `true` or addresses, `tables` replaces tables (`{"profiles": {"key": "id",
/// "rows": […]}}`). `bind_sessions` (`true` or addresses) makes sessions belong to a client of the project's own OAuth
/// server, `consents` turns that server on and replaces what users have allowed its clients (`[{"user": ADDRESS,
/// "client_id": UUID, "name": …, "scopes": […]}]`; `null` turns it off), `stray_sessions` deletes sessions but leaves
/// their tokens, `not_after` lets all sessions end after so many seconds, and `rewind` sets all of them back by so many
/// refreshes, as in a database that was restored from a copy.
extension SupabaseProject {
    mutating func apply(_ item: JSONObject.Member, at now: Int) throws {
        let members = try item.object().members
        for member in members.filter({ $0.name == "configuration" }) + members.filter({ $0.name != "configuration" }) {
            try apply(member.name, .init("supabase.\(member.name)", member.value), at: now)
        }
    }

    private mutating func apply(_ key: String, _ member: JSONObject.Member, at now: Int) throws {
        switch key {
        case "configuration": settings = SupabaseSettings(try .init(reading: member))
        case "tables":
            for table in try member.object().members {
                try table.allow(["key", "rows"])
                let rows = try table.optional("rows")?.each { try $0.object() }
                tables[table.name] = SupabaseTable(key: try table.optional("key")?.string() ?? "id", rows: rows ?? [])
            }
        case "consents": consents = try member.isNull ? nil : member.each { try consent($0) }
        case "users":
            for item in try member.each({ $0 }) { try users.add(item, at: now) }
            runTrigger()
        case "ban":
            let end = SupabaseInstant(seconds: now + 3_155_760_000, nanoseconds: 0)
            for id in try users.ids(member) { users.ban(id, until: end) }
        case "unban": for id in try users.ids(member) { users.ban(id, until: nil) }
        case "delete_users":
            for id in try users.ids(member) {
                users.remove(id)
                sessions.end { $0.userID == id }
            }
        case "end_sessions": sessions.end(where: try picked(member))
        case "bind_sessions": sessions.change(where: try picked(member)) { $0.clientID = SupabaseText.uuid() }
        case "stray_sessions": sessions.stray(where: try picked(member))
        case "not_after":
            let end = now + (try member.integer())
            sessions.change(where: { _ in true }) { $0.endsAt = end }
        case "rewind":
            let count = try member.integer()
            sessions.change(where: { _ in true }) { $0.rewind(by: count) }
        default: guard try settings.set(key, to: member) else { throw member.isUnknown }
        }
    }

    private func consent(_ item: JSONObject.Member) throws -> SupabaseConsent {
        try item.allow(["user", "client_id", "name", "scopes"])
        return SupabaseConsent(
            userID: users.user(email: try item.required("user").string())?.id ?? "",
            clientID: try item.required("client_id").string(), name: try item.optional("name")?.string() ?? "",
            scopes: try item.optional("scopes").map([String].init(reading:)) ?? ["email"])
    }

    private func picked(_ member: JSONObject.Member) throws -> (SupabaseSession) -> Bool {
        if member.value.bool == true { return { _ in true } }
        let ids = try users.ids(member)
        return { ids.contains($0.userID) }
    }
}

extension SupabaseUsers {
    fileprivate func ids(_ member: JSONObject.Member) throws -> [String] {
        try [String](reading: member).compactMap { user(email: $0)?.id ?? user(phone: $0)?.id }
    }

    fileprivate mutating func add(_ item: JSONObject.Member, at now: Int) throws {
        try item.allow(["email", "phone", "password", "data", "confirmed"])
        let data = try item.optional("data")?.object() ?? JSONObject()
        let password = try item.optional("password")?.string()
        let isConfirmed = try item.optional("confirmed")?.bool() ?? true
        var user: SupabaseUser
        if let member = try item.optional("email") {
            guard let email = SupabaseText.email(try member.string()) else { throw member.mistake("an address") }
            guard self.user(email: email) == nil else { return }
            user = SupabaseUser(email: email, password: password, data: data, at: now)
            if isConfirmed { user.confirmEmail(at: now) }
        } else {
            let member = try item.required("phone")
            guard let phone = SupabaseText.phone(try member.string()) else { throw member.mistake("a number") }
            guard self.user(phone: phone) == nil else { return }
            user = SupabaseUser(phone: phone, password: password, data: data, at: now)
            if isConfirmed { user.confirmPhone(at: now) }
        }
        save(user, at: now)
    }
}

extension SupabaseSettings: NamedSettings {
    static var all: [Setting<SupabaseSettings>] {
        [
            .init("configuration", \.configuration), .init("autoconfirm", \.autoconfirm),
            .init("phone_autoconfirm", \.phoneAutoconfirm), .init("rotation", \.rotates),
            .init("allow_reuse", \.allowsReuse), .init("issuer_claim", \.namesIssuer),
            .init("signup", \.allowsSignUp), .init("email", \.allowsEmail), .init("phone", \.allowsPhone),
            .init("anonymous", \.allowsAnonymous), .init("manual_linking", \.allowsLinking),
            .init("secure_email_change", \.securesEmailChange),
            .init("secure_password_change", \.securesPasswordChange),
            .init("require_current_password", \.requiresCurrentPassword), .init("password_digit", \.requiresDigit),
            .init("single_session", \.singleSession), .init("profile_trigger", \.profileTrigger),
            .init("passkeys", \.allowsPasskeys), .init("reuse_interval", \.reuseInterval),
            .init("access_token_lifetime", \.accessTokenLifetime),
            .init("password_min_length", \.minPasswordLength), .init("otp_lifetime", \.otpLifetime),
            .init("sms_lifetime", \.smsLifetime), .init("mail_interval", \.mailInterval),
            .init("sms_interval", \.smsInterval), .init("flow_lifetime", \.flowLifetime),
            .init("relay_lifetime", \.relayLifetime), .init("max_passkeys", \.maxPasskeys),
            .init("session_timebox", \.timebox), .init("session_inactivity", \.inactivity),
            .init("allow_low_aal", \.lowLevelLifetime), .init("request_limit", \.requestLimit),
            .init("mail_limit", \.mailLimit), .init("allow_list", \.allowList), .init("api_keys", \.apiKeys),
            .init("providers", \.providers), .init("mfa", \.factors), .init("leaked_passwords", \.leakedPasswords),
            .init("passkey_origins", \.passkeyOrigins), .init("algorithm", \.algorithm), .init("issuer", \.issuer),
            .init("forgery", \.forgery), .init("refresh_tokens", \.refreshTokens),
            .init("site_url", \.siteURL) { member in
                guard SupabaseURL(try member.string()) != nil else { throw member.mistake("an absolute URL") }
                return try member.string()
            },
            .init("upgrade", \.upgradePercentage) { try $0.integer(in: 0...100) },
            .init("token_hook", \.tokenHook),
            .init("otp_length", \.otpLength) { try $0.integer(in: 6...10) },
            .init("passkey_rp_id", \.passkeyPartyID), .init("captcha", \.captcha),
            .init("sso_domains", \.ssoDomains) { domains in
                try domains.table { id in
                    guard SupabaseText.isUUID(try id.string()) else { throw id.mistake("a UUID") }
                    return try id.string()
                }
            },
        ]
    }
}

extension SupabaseError: SettingValue, JSONConvertible {
    /// A hook's error: a status and text of its own, or a code of the server's for a hook that did not respond.
    init(reading member: JSONObject.Member) throws {
        try member.allow(["status", "code", "message"])
        let code = try member.optional("code")?.string()
        let usual = code == nil ? 500 : code == "hook_payload_invalid_content_type" ? 400 : 422
        let status = try member.optional("status")?.integer() ?? usual
        guard (400...599).contains(status) else { throw member.mistake("a status from 400 to 599") }
        self.init(
            status, code ?? (status == 500 ? "unexpected_failure" : "unknown"),
            try member.optional("message")?.string() ?? "The hook did not agree.")
    }

    var jsonValue: JSON { .object(["status": status, "code": code, "message": message]) }
}
