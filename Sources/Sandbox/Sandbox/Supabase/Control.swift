internal import RingbackBase

/// What a control document says under `supabase`: settings by the names that the response shows, and actions.
/// `configuration` comes first and sets everything to the values of A or B.
///
/// Actions: `users` adds users (`email`, `phone`, `password`, `data`, `confirmed`), `ban`, `unban` and `delete_users`
/// take addresses, `end_sessions` takes `true` or addresses, `tables` replaces tables (`{"profiles": {"key": "id",
/// "rows": […]}}`). `bind_sessions` (`true` or addresses) makes sessions belong to a client of the project's own OAuth
/// server, `consents` turns that server on and replaces what users have allowed its clients (`[{"user": ADDRESS,
/// "client_id": UUID, "name": …, "scopes": […]}]`; `null` turns it off), `stray_sessions` deletes sessions but leaves
/// their tokens, `not_after` lets all sessions end after so many seconds, and `rewind` sets all of them back by so many
/// refreshes, as in a database that was restored from a copy.
struct SupabaseChange {
    typealias Mistake = ControlDocument.Mistake

    private let members: [JSONObject.Member]

    /// Refuses a mistake before anything changes.
    init(parsing item: JSONObject.Member) throws(Mistake) {
        members = try item.object().members.map { .init("supabase.\($0.name)", $0.value) }
        var project = SupabaseProject(url: "")
        try apply(to: &project, at: 0)
    }

    func apply(to project: inout SupabaseProject, at now: Int) throws(Mistake) {
        if let member = members.first(where: { $0.name == "supabase.configuration" }) {
            project.settings = SupabaseSettings(try member.oneOf(SupabaseSettings.Configuration.self))
        }
        for member in members where member.name != "supabase.configuration" {
            let key = String(member.name.dropFirst("supabase.".utf8.count))
            if try project.settings.set(key, to: member) { continue }
            if try project.tables.set(key, to: member) { continue }
            if try project.consents.set(key, to: member, project.accounts.users) { continue }
            guard try project.accounts.perform(key, member, at: now) else {
                throw Mistake(text: "\(member.name) is not a key of this document")
            }
            project.runTrigger()
        }
    }
}

extension SupabaseTables {
    fileprivate mutating func set(
        _ key: String, to member: JSONObject.Member
    ) throws(ControlDocument.Mistake) -> Bool {
        guard key == "tables" else { return false }
        for table in try member.object().members {
            try table.allow(["key", "rows"])
            let rows = try table.optional("rows")?.each { row throws(ControlDocument.Mistake) in try row.object() }
            tables[table.name] = Table(key: try table.optional("key")?.string() ?? "id", rows: rows ?? [])
        }
        return true
    }
}

extension SupabaseAccounts {
    fileprivate mutating func perform(
        _ key: String, _ member: JSONObject.Member, at now: Int
    ) throws(ControlDocument.Mistake) -> Bool {
        switch key {
        case "users":
            _ = try member.each { item throws(ControlDocument.Mistake) in try users.add(item, at: now) }
        case "ban":
            let end = SupabaseInstant(seconds: now + 3_155_760_000, nanoseconds: 0)
            for id in try users.ids(member) { users.ban(id, until: end) }
        case "unban":
            for id in try users.ids(member) { users.ban(id, until: nil) }
        case "delete_users":
            for id in try users.ids(member) {
                users.remove(id)
                sessions.end { $0.userID == id }
            }
        case "end_sessions":
            sessions.end(where: try picked(member))
        case "bind_sessions":
            sessions.change(where: try picked(member)) { $0.clientID = SupabaseText.uuid() }
        case "stray_sessions": sessions.stray(where: try picked(member))
        case "not_after":
            let end = now + (try member.integer())
            sessions.change(where: { _ in true }) { $0.endsAt = end }
        case "rewind":
            let count = try member.integer()
            sessions.change(where: { _ in true }) { $0.rewind(by: count) }
        default: return false
        }
        return true
    }

    /// Picks all sessions, or those of some users.
    private func picked(
        _ member: JSONObject.Member
    ) throws(ControlDocument.Mistake) -> (SupabaseSession) -> Bool {
        if member.value.bool == true { return { _ in true } }
        let ids = try users.ids(member)
        return { ids.contains($0.userID) }
    }
}

extension SupabaseUsers {
    fileprivate func ids(_ member: JSONObject.Member) throws(ControlDocument.Mistake) -> [String] {
        let names = try member.each { item throws(ControlDocument.Mistake) in try item.string() }
        return names.compactMap { user(email: $0)?.id ?? user(phone: $0)?.id }
    }

    fileprivate mutating func add(_ item: JSONObject.Member, at now: Int) throws(ControlDocument.Mistake) {
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

/// The settings by their names in the control document and its response.
extension SupabaseSettings {
    private static var flags: [(String, WritableKeyPath<SupabaseSettings, Bool>)] {
        [
            ("autoconfirm", \.autoconfirm), ("phone_autoconfirm", \.phoneAutoconfirm), ("rotation", \.rotates),
            ("allow_reuse", \.allowsReuse), ("issuer_claim", \.namesIssuer), ("signup", \.allowsSignUp),
            ("email", \.allowsEmail), ("phone", \.allowsPhone), ("anonymous", \.allowsAnonymous),
            ("manual_linking", \.allowsLinking), ("secure_email_change", \.securesEmailChange),
            ("secure_password_change", \.securesPasswordChange),
            ("require_current_password", \.requiresCurrentPassword), ("password_digit", \.requiresDigit),
            ("single_session", \.singleSession), ("profile_trigger", \.profileTrigger),
            ("passkeys", \.allowsPasskeys),
        ]
    }

    private static var numbers: [(String, WritableKeyPath<SupabaseSettings, Int>)] {
        [
            ("reuse_interval", \.reuseInterval), ("access_token_lifetime", \.accessTokenLifetime),
            ("password_min_length", \.minPasswordLength), ("otp_lifetime", \.otpLifetime),
            ("sms_lifetime", \.smsLifetime), ("mail_interval", \.mailInterval), ("sms_interval", \.smsInterval),
            ("flow_lifetime", \.flowLifetime), ("relay_lifetime", \.relayLifetime),
            ("max_passkeys", \.maxPasskeys),
        ]
    }

    private static var limits: [(String, WritableKeyPath<SupabaseSettings, Int?>)] {
        [
            ("session_timebox", \.timebox), ("session_inactivity", \.inactivity), ("allow_low_aal", \.lowLevelLifetime),
            ("request_limit", \.requestLimit), ("mail_limit", \.mailLimit),
        ]
    }

    private static var lists: [(String, WritableKeyPath<SupabaseSettings, [String]>)] {
        [
            ("allow_list", \.allowList), ("api_keys", \.apiKeys), ("providers", \.providers), ("mfa", \.factors),
            ("leaked_passwords", \.leakedPasswords), ("passkey_origins", \.passkeyOrigins),
        ]
    }

    /// False for a name that no setting has.
    mutating func set(_ key: String, to member: JSONObject.Member) throws(ControlDocument.Mistake) -> Bool {
        if let (_, path) = SupabaseSettings.flags.first(where: { $0.0 == key }) {
            self[keyPath: path] = try member.bool()
        } else if let (_, path) = SupabaseSettings.numbers.first(where: { $0.0 == key }) {
            self[keyPath: path] = try member.integer()
        } else if let (_, path) = SupabaseSettings.limits.first(where: { $0.0 == key }) {
            self[keyPath: path] = try member.isNull ? nil : member.integer()
        } else if let (_, path) = SupabaseSettings.lists.first(where: { $0.0 == key }) {
            self[keyPath: path] = try member.each { item throws(ControlDocument.Mistake) in try item.string() }
        } else {
            return try setOther(key, to: member)
        }
        return true
    }

    private mutating func setOther(_ key: String, to member: JSONObject.Member) throws(ControlDocument.Mistake) -> Bool
    {
        switch key {
        case "algorithm": algorithm = try member.oneOf(Algorithm.self)
        case "issuer": issuer = try member.isNull ? nil : member.string()
        case "forgery": forgery = try member.isNull ? nil : member.oneOf(Forgery.self)
        case "refresh_tokens": refreshTokens = try member.oneOf(RefreshTokens.self)
        case "site_url":
            let text = try member.string()
            guard SupabaseURL(text) != nil else { throw member.mistake("an absolute URL") }
            siteURL = text
        case "otp_length":
            let length = try member.integer()
            guard (6...10).contains(length) else { throw member.mistake("a number from 6 to 10") }
            otpLength = length
        case "upgrade":
            let percentage = try member.integer()
            guard percentage <= 100 else { throw member.mistake("a number from 0 to 100") }
            upgradePercentage = percentage
        case "token_hook": tokenHook = try member.isNull ? nil : SupabaseError(hook: member)
        case "user_hook": userHook = try member.isNull ? nil : SupabaseError(userHook: member)
        case "passkey_rp_id": passkeyPartyID = try member.string()
        case "captcha": captcha = try member.isNull ? nil : member.string()
        case "sso_domains":
            ssoDomains = [:]
            for domain in try member.object().members {
                let place = JSONObject.Member("\(member.name).\(domain.name)", domain.value)
                let id = try place.string()
                guard SupabaseText.isUUID(id) else { throw place.mistake("a UUID") }
                ssoDomains[domain.name] = id
            }
        default: return false
        }
        return true
    }

    var json: JSON {
        var members = JSONObject([.init("configuration", .string(configuration.rawValue))])
        for (name, path) in SupabaseSettings.flags { members[name] = .bool(self[keyPath: path]) }
        for (name, path) in SupabaseSettings.numbers { members[name] = .integer(self[keyPath: path]) }
        for (name, path) in SupabaseSettings.limits { members[name] = self[keyPath: path].map(JSON.integer) ?? .null }
        for (name, path) in SupabaseSettings.lists { members[name] = .array(self[keyPath: path].map(JSON.string)) }
        members["algorithm"] = .string(algorithm.rawValue)
        members["issuer"] = issuer.map(JSON.string) ?? .null
        members["forgery"] = forgery.map { .string($0.rawValue) } ?? .null
        members["refresh_tokens"] = .string(refreshTokens.rawValue)
        members["site_url"] = .string(siteURL)
        members["upgrade"] = .integer(upgradePercentage)
        members["token_hook"] = tokenHook?.hookJSON ?? .null
        members["user_hook"] = userHook?.hookJSON ?? .null
        members["otp_length"] = .integer(otpLength)
        members["passkey_rp_id"] = .string(passkeyPartyID)
        members["captcha"] = captcha.map(JSON.string) ?? .null
        let domains = ssoDomains.sorted { $0.key < $1.key }.map { JSONObject.Member($0.key, .string($0.value)) }
        members["sso_domains"] = .object(JSONObject(domains))
        return .object(members)
    }
}

extension SupabaseError {
    /// A hook's error: a status and text of its own, or a code of the server's for a hook that did not respond.
    fileprivate init(hook member: JSONObject.Member) throws(ControlDocument.Mistake) {
        try member.allow(["status", "code", "message"])
        let code = try member.optional("code")?.string()
        let usual =
            switch code {
            case nil: 500
            case "hook_payload_invalid_content_type": 400
            default: 422
            }
        let status = try member.optional("status")?.integer() ?? usual
        guard (400...599).contains(status) else { throw member.mistake("a status from 400 to 599") }
        self.init(
            status, code ?? (status == 500 ? "unexpected_failure" : "unknown"),
            try member.optional("message")?.string() ?? "The hook did not agree.")
    }

    /// An error of the hook before a user is created: a status, a text, and no code unless it has one.
    fileprivate init(userHook member: JSONObject.Member) throws(ControlDocument.Mistake) {
        try self.init(hook: member)
        code = try member.optional("code")?.string() ?? ""
    }

    fileprivate var hookJSON: JSON {
        ["status": .integer(status), "code": .string(code), "message": .string(message)]
    }
}
