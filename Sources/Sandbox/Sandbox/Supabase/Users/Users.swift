/// The users of a project.
struct SupabaseUsers {
    private var byID: [String: SupabaseUser] = [:]
    /// New users that the trigger of the database has not seen yet, as they were saved first.
    private var added: [SupabaseUser] = []

    subscript(id: String) -> SupabaseUser? { byID[id] }

    var all: some Collection<SupabaseUser> { byID.values }

    func first(where isWanted: (SupabaseUser) -> Bool) -> SupabaseUser? { byID.values.first(where: isWanted) }

    func user(email: String) -> SupabaseUser? { first { !email.isEmpty && $0.email == email && !$0.isManaged } }

    func user(phone: String) -> SupabaseUser? { first { !phone.isEmpty && $0.phone == phone } }

    func user(provider: String, subject: String) -> SupabaseUser? {
        first { user in user.identities.contains { $0.provider == provider && $0.subject == subject } }
    }

    /// Stores a user who is new or has changed. Returns the user as stored.
    @discardableResult
    mutating func save(_ user: SupabaseUser, at now: Int) -> SupabaseUser {
        var user = user
        user.updatedAt = .next(now)
        if byID.updateValue(user, forKey: user.id) == nil { added.append(user) }
        return user
    }

    mutating func remove(_ id: String) { byID[id] = nil }

    mutating func ban(_ id: String, until end: SupabaseInstant?) { byID[id]?.bannedUntil = end }

    mutating func signedIn(_ id: String, at now: Int) { byID[id]?.lastSignInAt = .next(now) }

    mutating func takeAdded() -> [SupabaseUser] {
        defer { added = [] }
        return added
    }
}
