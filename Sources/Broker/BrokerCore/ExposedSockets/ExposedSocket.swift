internal import RingbackBase

/// Accounts that are served on a socket of their own, to a program that must not have all of them: in a container, or
/// at the far end of an SSH connection. This is a value; ``ExposedSocketRegistry`` opens and closes the socket.
public struct ExposedSocket: Sendable, Equatable {
    public enum Origin: Sendable, Equatable {
        /// A call of the socket API. It is stored in the state directory.
        case call
        /// The configuration, at this place, as text for the user.
        case configuration(String)
    }

    public struct Order: Sendable, Equatable {
        public var name: String
        public var accounts: [AccountName]
        /// The scopes that a token may have at most; nil for the session's own token, whatever scopes it has.
        public var ceiling: [String]?
        /// Other users who may connect, by their uid in the daemon's user namespace.
        public var allowedUIDs: [UInt32]
        /// A Flatpak app. The socket is in that app's own directory too.
        public var flatpak: String?
        /// How long it is open; nil for no bound. Whole seconds.
        public var lifetime: Duration?
        /// It serves the MCP server of its account, and no token.
        public var mcp: MCPAccess?
        /// It ends with the connection that made it, and is not stored.
        public var isTransient = false
        /// It also gives proofs for requests (RFC 9449), with which tokens that are bound to a key can be used.
        public var givesProofs = false
        /// It is for a confined program that may make sandboxes of its own. For the audit log.
        public var isForNested = false

        /// Lists are sorted and without duplicates, so that equal orders compare equal.
        public init(
            name: String, accounts: [AccountName], ceiling: [String]? = nil, allowedUIDs: [UInt32] = [],
            flatpak: String? = nil, lifetime: Duration? = nil, mcp: MCPAccess? = nil
        ) {
            self.name = name
            self.accounts = Array(Set(accounts)).sorted()
            self.ceiling = ceiling.map { Array(Set($0)).sorted() }
            self.allowedUIDs = Array(Set(allowedUIDs)).sorted()
            self.flatpak = flatpak
            self.lifetime = lifetime
            self.mcp = mcp
        }
    }

    /// The permitted tools and methods of an MCP server.
    public struct MCPAccess: Sendable, Equatable {
        /// The tools that are listed and may be called; nil for all of them.
        public let tools: [String]?
        /// The methods that may be used beside those that every session needs.
        public let methods: [String]

        public init(tools: [String]?, methods: [String]) {
            self.tools = tools.map { Array(Set($0)).sorted() }
            self.methods = Array(Set(methods)).sorted()
        }
    }

    /// Random, and never used twice.
    public let id: String
    public let order: Order
    public internal(set) var origin: Origin
    public let createdAt: WallInstant
    public let expiry: Deadline?
    /// The bindings when it was exposed: an account of the same name with another provider or client is another one.
    var bindings: [AccountName: SessionBinding] = [:]

    public var name: String { order.name }
    public var accounts: [AccountName] { order.accounts }
    public var ceiling: [String]? { order.ceiling }
    var isOfCall: Bool { origin == .call }

    /// True if the account still has the binding that it had when it was exposed.
    public func isBound(_ name: AccountName, to binding: SessionBinding) -> Bool { bindings[name] == binding }

    public func shows(_ account: String) -> Bool { accounts.contains { $0.rawValue == account } }

    /// True if a token with this key may be issued here.
    func covers(_ key: TokenKey) -> Bool {
        guard key.audience == nil, key.resource == nil else { return false }
        guard let ceiling, let scopes = key.scopes else { return true }
        return scopes.allSatisfy { TokenDownscoping.isCovered($0, by: ceiling) }
    }

    /// True if the provider stated the token's scope, within the ceiling. A token without one may have any scope.
    public func permits(_ token: AccessToken) -> Bool {
        guard let ceiling else { return true }
        guard token.isScopeStated, let scope = token.scope, !scope.isEmpty else { return false }
        return TokenDownscoping.excess(of: scope.split(separator: " ").map(String.init), beyond: ceiling).isEmpty
    }

    func hasExpired(at now: BootInstant) -> Bool { expiry.map { $0.boot <= now } ?? false }
}

extension ExposedSocket.Order {
    public static let longestLifetime: Duration = .seconds(31_536_000)
    static let maxAccounts = 64
    static let maxScopes = 64
    static let maxUIDs = 16
    static let maxMCPNames = 256
    /// Bytes.
    static let maxMCPName = 256

    /// The first invalid member and the reason; nil if the order is valid.
    public var mistake: (member: String, reason: String)? {
        if AccountName(name) == nil {
            return ("name", "it begins with a-z or 0-9 and goes on with up to 63 of a-z, 0-9, “.”, “_” and “-”")
        }
        if accounts.isEmpty { return ("accounts", "name the accounts to show, one at least") }
        if accounts.count > Self.maxAccounts { return ("accounts", "more than \(Self.maxAccounts)") }
        if let ceiling,
            ceiling.isEmpty || ceiling.count > Self.maxScopes || !ceiling.allSatisfy(TokenDownscoping.isScope)
        {
            let range = "it is 1 to \(Self.maxScopes) scopes with spaces between them"
            return ("scope", "\(range); leave it out for no ceiling")
        }
        if allowedUIDs.count > Self.maxUIDs { return ("allow_uids", "more than \(Self.maxUIDs)") }
        if allowedUIDs.contains(where: { $0 == 65_534 || $0 == .max }) {
            return ("allow_uids", "65534 is the uid of all users that this system does not know")
        }
        if let flatpak, !Self.isFlatpakID(flatpak) {
            return ("flatpak", "it is an app's id, such as org.example.App")
        }
        if flatpak != nil, !allowedUIDs.isEmpty {
            return ("allow_uids", "a Flatpak app runs as you: leave it out")
        }
        if let lifetime, !(.seconds(1)...Self.longestLifetime).contains(lifetime) {
            return ("ttl", "it is 1 to \(Self.longestLifetime.wholeSeconds) seconds (a year)")
        }
        return mcp.flatMap(mistakeOfMCP)
    }

    private func mistakeOfMCP(_ mcp: ExposedSocket.MCPAccess) -> (member: String, reason: String)? {
        if accounts.count > 1 { return ("accounts", "mcp is for one account") }
        if ceiling != nil { return ("scope", "it cannot be combined with mcp: no token is served") }
        if givesProofs { return ("proof", "it cannot be combined with mcp: no token is served") }
        for (member, names) in [("mcp.tools", mcp.tools ?? []), ("mcp.methods", mcp.methods)] {
            if names.count > Self.maxMCPNames { return (member, "more than \(Self.maxMCPNames)") }
            let areNames = names.allSatisfy { name in
                (1...Self.maxMCPName).contains(name.utf8.count) && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            }
            if !areNames {
                return (
                    member,
                    "the names of tools and methods have 1 to \(Self.maxMCPName) bytes, without control characters"
                )
            }
        }
        return nil
    }

    /// Elements with dots between them, as `flatpak` requires. The id becomes the name of a directory.
    private static func isFlatpakID(_ id: String) -> Bool {
        let elements = id.split(separator: ".", omittingEmptySubsequences: false)
        return elements.count >= 2 && id.utf8.count <= 255
            && elements.allSatisfy { element in
                guard let first = element.first, !first.isNumber, first != "-" else { return false }
                return element.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || "_-".contains($0) }
            }
    }
}

extension Broker {
    /// A deadline by the wall clock as it is set now, and how long it is until then: whole seconds, never negative.
    public func instant(of deadline: Deadline) -> (at: WallInstant, remaining: Duration) {
        (deadline.wall(by: clock), deadline.remaining(at: clock.bootInstant))
    }

    public func binding(of name: AccountName) async -> SessionBinding? {
        try? await sessionManager.account(name).binding
    }

    /// The part of a ceiling that can be requested: a provider refuses a request for more scopes than were granted.
    public func reachable(_ ceiling: [String], of name: AccountName) async -> [String] {
        let reachable = TokenDownscoping.reachable(ceiling, of: await grantedScopes(of: name))
        return reachable.isEmpty ? ceiling : reachable
    }

    /// The account's scopes and those that the provider stated. Empty without sign-in: each request may have others.
    private func grantedScopes(of name: AccountName) async -> Set<String> {
        guard let account = try? await sessionManager.account(name), account.kind.needsSignIn else { return [] }
        let stated = snapshot.current(name.rawValue)?.entry.issuedToken.token.scope ?? ""
        return Set(account.scopes).union(stated.split(separator: " ").map(String.init))
    }

    public func remarks(on order: ExposedSocket.Order) async -> [String] {
        guard let ceiling = order.ceiling else { return [] }
        var remarks: [String] = []
        for name in order.accounts {
            let granted = await grantedScopes(of: name)
            remarks += [TokenDownscoping.remark(on: name.rawValue, below: ceiling, of: granted)].compactMap(\.self)
        }
        return remarks
    }

    public func isOver(_ exposedSocket: ExposedSocket) -> Bool { exposedSocket.hasExpired(at: clock.bootInstant) }
}
