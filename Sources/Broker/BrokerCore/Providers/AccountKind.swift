public import RingbackBase
public import SessionVault
internal import Synchronization

/// The kind of an account: what is known about its provider from the configuration alone.
public protocol AccountKind: Sendable {
    func provider(of account: Account, with tools: ProviderTools) -> any SignInProvider

    /// The provider and the client of the account's sessions.
    func binding(of account: Account) -> SessionBinding

    /// Stands for the binding in the vault: it differs for accounts of one binding that must not share a session.
    func bindingID(of account: Account) -> String

    func issuer(of account: Account) -> String?

    /// False where the configuration alone makes the session, see ``configuredSession(of:by:)``.
    var needsSignIn: Bool { get }

    /// The account through whose sign-in this one gets its tokens; nil for one with a sign-in or credentials of its own.
    var upstream: AccountName? { get }

    /// The session that the configuration alone makes; nil where users sign in.
    func configuredSession(of account: Account, by clock: BrokerClock) -> Session?

    /// Refuses a token that this kind of account cannot have.
    func check(_ query: SessionQuery, of account: Account) throws(BrokerError)

    /// How the user can get a session that can be refreshed; nil if no way is known.
    func renewalAdvice(of account: Account) -> Reason?

    /// What callers may see of the session's attachment of this kind.
    func shown(of session: Session) -> SessionAttachment?

    /// The observer of the account's sessions; nil if this kind needs none.
    func observer(with tools: ProviderTools) -> (any SessionObserver)?

    /// True if what the setting names can be used now. No request is sent to the provider.
    func isUsable(_ setting: UnusableSetting) async -> Bool
}

extension AccountKind {
    public func bindingID(of account: Account) -> String { binding(of: account).text }
    public var needsSignIn: Bool { true }
    public var upstream: AccountName? { nil }
    public func configuredSession(of account: Account, by clock: BrokerClock) -> Session? { nil }
    public func renewalAdvice(of account: Account) -> Reason? { nil }
    public func shown(of session: Session) -> SessionAttachment? { nil }
    public func observer(with tools: ProviderTools) -> (any SessionObserver)? { nil }
    public func isUsable(_ setting: UnusableSetting) async -> Bool { false }
}

/// Shared by the providers of all kinds.
public struct ProviderTools: Sendable {
    public private(set) var http: any HTTPClient
    public let vault: any Vault
    public let work: Work
    public let clock: BrokerClock
    public let record: @Sendable (BrokerFact) -> Void
    private let memories = ProviderMemories()
    private let usualHTTP: any HTTPClient

    init(
        http: any HTTPClient, vault: any Vault, work: Work, clock: BrokerClock,
        record: @escaping @Sendable (BrokerFact) -> Void
    ) {
        self.http = http
        usualHTTP = http
        self.vault = vault
        self.work = work
        self.clock = clock
        self.record = record
    }

    public func sending(with http: any HTTPClient) -> ProviderTools {
        var tools = self
        tools.http = http
        return tools
    }

    /// The memory that all providers of a kind share. It is made at its first use.
    public func memory<Memory: ProviderMemory>(_ type: Memory.Type = Memory.self) -> Memory {
        memories.find(type) { Memory(http: usualHTTP, work: work, clock: clock) }
    }

    func configurationChanged() async {
        for memory in memories.all { await memory.configurationChanged() }
    }
}

/// A cache that the providers of a kind share beyond one use, such as metadata.
public protocol ProviderMemory: AnyObject, Sendable {
    init(http: any HTTPClient, work: Work, clock: BrokerClock)

    /// The configuration was read again: what is remembered has to be requested again before its next use.
    func configurationChanged() async
}

extension ProviderMemory {
    public func configurationChanged() async {}
}

private final class ProviderMemories: Sendable {
    private let known = Mutex<[ObjectIdentifier: any ProviderMemory]>([:])

    var all: [any ProviderMemory] { known.withLock { Array($0.values) } }

    func find<Memory: ProviderMemory>(_ type: Memory.Type, _ make: () -> Memory) -> Memory {
        known.withLock { known in
            if let found = known[ObjectIdentifier(type)] as? Memory { return found }
            let made = make()
            known[ObjectIdentifier(type)] = made
            return made
        }
    }
}

/// What one kind of account stores with a session. The broker keeps it unread, even of kinds that it does not know.
public struct SessionAttachment: Sendable, Equatable {
    public var secrets: [String: Secret]
    public var facts: JSONObject

    public init(facts: JSONObject, secrets: [String: Secret] = [:]) {
        self.facts = facts
        self.secrets = secrets
    }
}

extension Account {
    func provider(with tools: ProviderTools) -> any SignInProvider { kind.provider(of: self, with: tools) }

    public var binding: SessionBinding { kind.binding(of: self) }
    public var bindingID: String { kind.bindingID(of: self) }
    public var issuer: String? { kind.issuer(of: self) }
    var renewalAdvice: Reason? { kind.renewalAdvice(of: self) }

    /// The host of the sign-in page, if there is one, otherwise of the issuer, the endpoints or the MCP server. With the
    /// port, if that is not the usual one: several providers may be at 127.0.0.1.
    func providerHost(page: String = "") -> String? {
        // The binding may have several words.
        let places = [page, issuer ?? ""] + binding.provider.split(separator: " ").map(String.init)
        return places.lazy.compactMap { try? WebURL(parsing: $0).place }.first { !$0.isEmpty }
    }

    public var slot: VaultSlot { VaultSlot(account: name.rawValue, binding: bindingID) }
}
