internal import StrictJSON

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
