internal import HTTPMessages

/// Accounts shown through a socket of their own, to a program that must not have all of them: in a container, at the
/// far end of an SSH connection. A value; who opens the socket is ``ExposedSocketRegistry``'s business.
public struct ExposedSocket: Sendable, Equatable {
    /// Who made it.
    public enum Origin: Sendable, Equatable {
        /// A call of the socket API. It rests in the state directory.
        case call
        /// The configuration, at this place for people.
        case configuration(String)
    }

    /// What somebody asks to be shown.
    public struct Order: Sendable, Equatable {
        public var name: String
        public var accounts: [AccountName]
        /// The most that a token may be good for; nil for the session's own token, whatever it is good for.
        public var ceiling: [String]?
        /// Other users who may connect, as the daemon's user namespace numbers them.
        public var allowedUIDs: [UInt32]
        /// A Flatpak app whose own directory the socket is in, too.
        public var flatpak: String?
        /// Seconds.
        public var lifetime: Int?

        /// Sorted, without duplicates: equal orders are equal.
        public init(
            name: String, accounts: [AccountName], ceiling: [String]? = nil, allowedUIDs: [UInt32] = [],
            flatpak: String? = nil, lifetime: Int? = nil
        ) {
            self.name = name
            self.accounts = Array(Set(accounts)).sorted()
            self.ceiling = ceiling.map { Array(Set($0)).sorted() }
            self.allowedUIDs = Array(Set(allowedUIDs)).sorted()
            self.flatpak = flatpak
            self.lifetime = lifetime
        }
    }

    /// Unguessable, and never given twice.
    public let id: String
    public let order: Order
    public internal(set) var origin: Origin
    /// Unix seconds.
    public let createdAt: Int
    public let expiry: Deadline?
    /// Where each account was when it was shown: under its name another provider or client is another account.
    var bindings: [AccountName: SessionBinding] = [:]

    public var name: String { order.name }
    public var accounts: [AccountName] { order.accounts }
    public var ceiling: [String]? { order.ceiling }

    /// True if a call made it, and the configuration did not.
    var isOfCall: Bool { origin == .call }

    /// True if the account is where it was when it was shown.
    public func isBound(_ name: AccountName, to binding: SessionBinding) -> Bool { bindings[name] == binding }

    /// True if it shows this account.
    public func shows(_ account: String) -> Bool { accounts.contains { $0.rawValue == account } }

    /// True if a token that is asked for so is one that it may give.
    func covers(_ key: TokenKey) -> Bool {
        guard key.audience == nil, key.resource == nil else { return false }
        guard let ceiling, let scopes = key.scopes else { return true }
        return scopes.allSatisfy(ceiling.contains)
    }

    /// True if the provider's own word on the token is that it is good for no more than the ceiling. A provider that
    /// says nothing may have given anything.
    public func permits(_ token: AccessToken) -> Bool {
        guard let ceiling else { return true }
        guard token.isScopeStated, let scope = token.scope, !scope.isEmpty else { return false }
        return scope.split(separator: " ").allSatisfy { ceiling.contains(String($0)) }
    }

    /// True once its time is over, at an instant since boot (milliseconds).
    func hasExpired(at boot: Int) -> Bool { expiry.map { $0.boot.milliseconds <= boot } ?? false }
}

extension ExposedSocket.Order {
    /// A year.
    public static let longestLifetime = 31_536_000
    static let maxAccounts = 64
    static let maxScopes = 64
    static let maxUIDs = 16

    /// What keeps the order from being carried out: the member and the reason, for people; nil if nothing does.
    public var mistake: (member: String, reason: String)? {
        if AccountName(name) == nil {
            return ("name", "it begins with a-z or 0-9 and goes on with up to 63 of a-z, 0-9, “.”, “_” and “-”")
        }
        if accounts.isEmpty { return ("accounts", "name the accounts to show, one at least") }
        if accounts.count > Self.maxAccounts { return ("accounts", "more than \(Self.maxAccounts)") }
        if let ceiling,
            ceiling.isEmpty || ceiling.count > Self.maxScopes || !ceiling.allSatisfy(TokenDownscoping.isScope)
        {
            return (
                "scope", "it is 1 to \(Self.maxScopes) scopes with spaces between them; leave it out for no ceiling"
            )
        }
        if allowedUIDs.count > Self.maxUIDs { return ("allow_uids", "more than \(Self.maxUIDs)") }
        if allowedUIDs.contains(where: { $0 == 65_534 || $0 == .max }) {
            return ("allow_uids", "65534 stands for every user whom this system cannot name")
        }
        if let flatpak, !Self.isFlatpakID(flatpak) {
            return ("flatpak", "it is an app's id, such as org.example.App")
        }
        if flatpak != nil, !allowedUIDs.isEmpty {
            return ("allow_uids", "a Flatpak app runs as you: leave it out")
        }
        if let lifetime, !(1...Self.longestLifetime).contains(lifetime) {
            return ("ttl", "it is 1 to \(Self.longestLifetime) seconds (a year)")
        }
        return nil
    }

    /// Elements with dots between them, as `flatpak` takes them: it becomes the name of a directory.
    private static func isFlatpakID(_ id: String) -> Bool {
        let elements = id.split(separator: ".", omittingEmptySubsequences: false)
        return elements.count >= 2 && id.utf8.count <= 255
            && elements.allSatisfy { element in
                guard let first = element.utf8.first, !(0x30...0x39).contains(first), first != 0x2D else {
                    return false
                }
                return element.utf8.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x2D: true
                    default: false
                    }
                }
            }
    }
}

extension Broker {
    /// When a deadline is, in Unix seconds, and in how many seconds.
    public func instant(of deadline: Deadline) -> (at: Int, remaining: Int) {
        (deadline.wall(by: clock).seconds, deadline.remaining(at: clock.bootInstant))
    }

    /// What a session of the account is bound to now; nil without such an account.
    public func binding(of name: AccountName) async -> SessionBinding? {
        try? await sessionManager.account(name).binding
    }

    /// What of a ceiling can be asked for. More than was granted is refused by the provider, though a part of it could be
    /// had.
    public func reachable(_ ceiling: [String], of name: AccountName) async -> [String] {
        let reachable = TokenDownscoping.reachable(ceiling, of: await grantedScopes(of: name))
        return reachable.isEmpty ? ceiling : reachable
    }

    /// What the account asks for, and what the provider said it gave. Empty where nobody knows; a service asks for what it
    /// likes each time.
    private func grantedScopes(of name: AccountName) async -> Set<String> {
        guard let account = try? await sessionManager.account(name), account.kind.serviceGrant == nil else { return [] }
        let stated = snapshot.current(name.rawValue)?.entry.issuedToken.token.scope ?? ""
        return Set(account.scopes).union(stated.split(separator: " ").map(String.init))
    }

    /// What a person should know of an order that can be carried out all the same: a sentence each.
    public func remarks(on order: ExposedSocket.Order) async -> [String] {
        guard let ceiling = order.ceiling else { return [] }
        var remarks: [String] = []
        for name in order.accounts {
            let granted = await grantedScopes(of: name)
            let remark = TokenDownscoping.remark(on: name.rawValue, below: ceiling, of: granted)
            remarks += remark.map { [$0] } ?? []
        }
        return remarks
    }

    /// True once the exposure's time is over.
    public func isOver(_ exposedSocket: ExposedSocket) -> Bool { exposedSocket.hasExpired(at: clock.boot()) }
}
