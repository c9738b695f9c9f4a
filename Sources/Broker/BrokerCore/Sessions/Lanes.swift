/// The lane of each account, with indexes of what a sign-in asks about all other accounts, which may be thousands. Every
/// change of a lane goes through the setter of the subscript, which keeps the indexes.
struct Lanes: Sendable {
    typealias Lane = SessionManager.Lane

    private var lanes: [AccountName: Lane] = [:]
    /// The accounts that users are signed in to, by provider and by user.
    private var signedIn = NameIndex<String>()
    private var users = NameIndex<ProviderUser>()
    /// The accounts that get their tokens through another account's sign-in, by that account.
    private var dependents = NameIndex<AccountName>()

    var keys: some Collection<AccountName> { lanes.keys }
    var values: some Collection<Lane> { lanes.values }

    subscript(name: AccountName) -> Lane? {
        get { lanes[name] }
        set {
            let former = lanes[name]
            lanes[name] = newValue
            let (left, entered) = (former.flatMap(ProviderUser.init), newValue.flatMap(ProviderUser.init))
            users.move(name, from: left, to: entered)
            signedIn.move(name, from: left?.provider, to: entered?.provider)
            dependents.move(name, from: former?.account.kind.upstream, to: newValue?.account.kind.upstream)
        }
    }

    /// The accounts that hold a session of the lane's user, in order, its own among them. Not every provider names users.
    func ofSameUser(as lane: Lane) -> [AccountName] {
        ProviderUser(lane).flatMap { $0.subject == nil ? nil : users[$0] } ?? []
    }

    /// True if a user is signed in to another account of the account's provider. Services have no users.
    func hasSignedInNeighbour(_ account: Account) -> Bool {
        account.kind.needsSignIn && signedIn[account.binding.provider].contains { $0 != account.name }
    }

    func dependents(of upstream: AccountName) -> [AccountName] { dependents[upstream] }
}

/// The user of a session at the account's provider.
private struct ProviderUser: Hashable, Sendable {
    let provider: String
    let subject: String?

    /// Nil for a service, and for an account without a session.
    init?(_ lane: SessionManager.Lane) {
        guard lane.account.kind.needsSignIn, let session = lane.state.visible else { return nil }
        provider = lane.account.binding.provider
        subject = session.subject
    }
}

/// The names of accounts by something that they have in common, in order.
private struct NameIndex<Key: Hashable & Sendable>: Sendable {
    private var names: [Key: [AccountName]] = [:]

    subscript(key: Key?) -> [AccountName] { key.flatMap { names[$0] } ?? [] }

    mutating func move(_ name: AccountName, from former: Key?, to key: Key?) {
        guard former != key else { return }
        if let former {
            names[former]?.removeAll { $0 == name }
            if names[former]?.isEmpty == true { names[former] = nil }
        }
        guard let key else { return }
        let place = place(of: name, in: self[key])
        names[key, default: []].insert(name, at: place)
    }

    /// By bisection: a user may have thousands of accounts.
    private func place(of name: AccountName, in others: [AccountName]) -> Int {
        var range = others.indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = others[middle] < name ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}
