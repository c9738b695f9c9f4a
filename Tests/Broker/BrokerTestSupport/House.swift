import RingbackBase
import SessionVault
import Synchronization
import TestSupport
import Testing

@testable import BrokerCore
@testable import OAuthSignIn

struct House: Sendable {
    let clock = TestClock()
    let vault = RecordingVault()
    let work = Work()
    let doors = Doors()
    let facts = Facts()
    let provider: FakeProvider
    let network: FakeNetwork
    let broker: Broker

    static let name = House.named("work")
    static func named(_ text: String) -> AccountName {
        guard let name = AccountName(text) else { preconditionFailure("\(text) is no account name") }
        return name
    }

    /// `others`: origins of further providers.
    /// `knowing`: the provider's own clock, where it is not this machine's.
    init(
        _ change: (inout Account) throws -> Void = { _ in }, knowing providersClock: TestClock? = nil,
        also others: (TestClock) throws -> [FakeProvider] = { _ in [] }
    ) async throws {
        provider = try FakeProvider(clock: providersClock ?? clock)
        network = FakeNetwork(try [provider] + others(clock))
        broker = Broker(
            vault: vault, http: network, callbackReceiver: doors.callbackReceiver, work: work, clock: clock.clock,
            record: facts.record)
        var account = House.account()
        try change(&account)
        await broker.configure([account])
        // Until the vault has been asked, every account is loading.
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
    }

    static func account(
        _ name: AccountName = House.name, issuer: String = "https://id.example", clientID: String = "ringback",
        scopes: [String] = ["openid", "email"]
    ) -> Account {
        Account(
            name: name, provider: "oidc", source: "test", kind: OAuthAccount(endpoints: .issuer(issuer)),
            clientID: clientID, scopes: scopes
        )
    }

    @discardableResult
    func signIn(
        _ name: AccountName = House.name, as subject: String = "alice", switching: Bool = false,
        at other: FakeProvider? = nil
    ) async throws -> CallbackVerdict {
        let flow = try await broker.signIn(name, SignInRequest(switchesSubject: switching)).flow
        return await broker.receive(try (other ?? provider).consent(flow.authorizationURL, as: subject))
    }

    func finish(_ flow: FlowView) async throws -> CallbackVerdict {
        await broker.receive(try provider.consent(flow.authorizationURL))
    }

    static func signedIn() async throws -> House {
        let house = try await House()
        try await house.signIn()
        return house
    }

    static func expired() async throws -> House {
        let house = try await House.signedIn()
        house.clock.advance(by: 3_600)
        return house
    }

    /// The same once the token was refreshed, while the vault did not take what came: its disk is full, and stays so.
    static func unsaved() async throws -> House {
        let house = try await House.expired()
        house.provider.hold(.token)
        let reading = Task { try await house.token() }
        #expect(await house.provider.arrived(.token, 2))
        await house.vault.fail(with: .unwritable(.diskFull))
        house.provider.release(.token)
        #expect(try await reading.value == "access-3")
        return house
    }

    func token(minValid: Int? = nil, _ name: AccountName = House.name) async throws(BrokerError) -> String {
        var query = SessionQuery()
        query.minValid = minValid.map { .seconds($0) }
        return try await broker.session(name, query).token.value.revealed()
    }

    func failure(minValid: Int? = nil, _ name: AccountName = House.name) async -> BrokerError? {
        await error { try await token(minValid: minValid, name) }
    }

    /// Asks for a token whose refresh is held at the provider, until it releases `.token`.
    func heldRefresh() async -> Task<BrokerError?, Never> {
        provider.hold(.token)
        let reading = Task { await failure() }
        #expect(await provider.arrived(.token, 2))
        return reading
    }

    func failure(_ query: SessionQuery) async -> BrokerError? {
        await error { try await broker.session(House.name, query) }
    }

    func refreshFailure(isForced: Bool = false) async -> BrokerError? {
        await error { try await broker.refresh(House.name, isForced: isForced) }
    }

    var view: AccountView { get async throws { try await broker.account(House.name) } }
}

/// Redirect URIs that nobody listens behind.
final class Doors: Sendable {
    private struct State {
        var opened = 0
        var closed: [String] = []
        var sites: [String: @Sendable (HTTPRequest) async -> HTTPResponse] = [:]
    }
    private let state = Mutex(State())
    var opened: Int { state.withLock { $0.opened } }
    var closed: [String] { state.withLock { $0.closed } }

    func site(at address: String) -> (@Sendable (HTTPRequest) async -> HTTPResponse)? {
        state.withLock { $0.sites[address] }
    }

    var callbackReceiver: CallbackReceiver {
        CallbackReceiver(
            open: { template, account in
                self.state.withLock { $0.opened += 1 }
                return template ?? "http://127.0.0.1:4711/callback/\(account)"
            },
            openSite: { name, _, site in
                self.state.withLock { state in
                    state.opened += 1
                    state.sites["http://\(name).localhost:4711/"] = site
                }
                return "http://\(name).localhost:4711/"
            },
            close: { uri, _ in
                self.state.withLock { state in
                    state.closed.append(uri)
                    state.sites[uri] = nil
                }
            },
            listeners: { self.opened > self.closed.count ? ["127.0.0.1:4711"] : [] })
    }
}

extension SessionQuery {
    init(_ change: (inout SessionQuery) -> Void) {
        self.init()
        change(&self)
    }
}

extension BrokerError {
    /// The name of the case, as in `conflict` or `provider.unproved`.
    var kind: String {
        if case .provider(let failure) = self { return "provider.\(BrokerError.label(of: failure))" }
        return BrokerError.label(of: self)
    }

    var field: String? { if case .invalid(let field, _) = self { field } else { nil } }

    private static func label(of value: Any) -> String {
        Mirror(reflecting: value).children.first?.label ?? "\(value)"
    }
}

func thrown<Value>(by call: @autoclosure () async throws -> Value) async -> BrokerError? {
    await error(call)
}

func error<Value>(_ call: () async throws -> Value) async -> BrokerError? {
    do {
        _ = try await call()
        return nil
    } catch {
        if !(error is BrokerError) { Issue.record(error) }
        return error as? BrokerError
    }
}

final class Facts: Sendable {
    private let state = Mutex<[BrokerFact]>([])
    var all: [BrokerFact] { state.withLock { $0 } }
    var record: @Sendable (BrokerFact) -> Void { { fact in self.state.withLock { $0.append(fact) } } }

    /// The names of the facts alone, in order.
    /// Without what nothing follows from.
    var names: [String] {
        all.map { String(String(describing: $0).prefix { $0 != "(" }) }.filter { $0 != "signInChosen" }
    }
}

extension SessionManager {
    var isOpenAndIdle: Bool { isOpen && isIdle }
    var isIdle: Bool { work.count == 0 && schedule.running.isEmpty }
}

extension Lanes {
    /// The accounts of which an index says something else than a search of all lanes.
    var misindexed: [AccountName] {
        values.filter { lane in
            let signedIn = values.filter { other in
                other.state.visible != nil && other.account.kind.needsSignIn
                    && other.account.binding.provider == lane.account.binding.provider
            }
            let subject = lane.state.visible?.subject
            let isUser = lane.account.kind.needsSignIn && subject != nil
            let sameUser = isUser ? signedIn.filter { $0.state.visible?.subject == subject } : []
            let isSecond = lane.account.kind.needsSignIn && signedIn.contains { $0.id != lane.id }
            let dependents = values.filter { $0.account.kind.upstream == lane.account.name }
            return ofSameUser(as: lane) != sameUser.map(\.account.name).sorted()
                || hasSignedInNeighbour(lane.account) != isSecond
                || self.dependents(of: lane.account.name) != dependents.map(\.account.name).sorted()
        }.map(\.account.name)
    }
}

extension House {
    /// A broker of a later life on the same vault, before its accounts are configured.
    func rebirth(
        bootID: String = "this boot", machineID: String = "", work: Work = Work(), facts: Facts = Facts()
    ) -> Broker {
        Broker(
            vault: vault, http: network, callbackReceiver: doors.callbackReceiver, work: work,
            clock: clock.clock(bootID: bootID, machineID: machineID),
            record: facts.record)
    }

    func runDueTasks(of broker: Broker? = nil) async {
        let sessionManager = (broker ?? self.broker).sessionManager
        _ = await sessionManager.runDueTasks()
        _ = await eventually { await sessionManager.isIdle }
    }

    func live(_ seconds: Int, step milliseconds: Int = 1_000, as broker: Broker? = nil) async {
        for _ in 0..<(seconds * 1_000 / milliseconds) {
            clock.advance(milliseconds: milliseconds)
            await runDueTasks(of: broker)
        }
    }

    func signIn(all names: [AccountName], at other: FakeProvider? = nil) async throws {
        for name in names { try await signIn(name, at: other) }
    }

    var refreshCount: Int { provider.presented.count }
}

extension Revocations {
    var isIdle: Bool { entries.values.allSatisfy { !$0.isRunning } }
}

extension Reason {
    /// A reason for tests that do not depend on which one it is.
    static let any = Reason.stated("It is not a URL.")

    /// True if it holds a value or a text with these characters. Its sentence is not here: see `SentenceTests`.
    func holds(_ value: String) -> Bool {
        switch self {
        case .both(let first, let second): first.holds(value) || second.holds(value)
        default: "\(self)".contains(value)
        }
    }

    var oauth: OAuthReason? { if case .kind(let fact) = self { fact.reason as? OAuthReason } else { nil } }

    /// What became of the registration that failed.
    var leftover: OAuthReason.Leftover? {
        guard case .both(_, let second) = self, case .leftover(let leftover)? = second.oauth else { return nil }
        return leftover
    }
}

/// Providers by origin; whoever else is asked does not exist.
final class FakeNetwork: HTTPClient {
    private let providers: [FakeProvider]
    private let strays = Mutex<[String]>([])

    init(_ providers: [FakeProvider]) { self.providers = providers }
    func provider(_ origin: String) -> FakeProvider? { providers.first { $0.origin == origin } }

    var strayURLs: [String] { strays.withLock { $0 } }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let origin = (try? WebURL(parsing: request.url))?.origin ?? ""
        guard let provider = providers.first(where: { $0.origin == origin }) else {
            strays.withLock { $0.append(request.url) }
            throw .unreachable(host: origin, reason: "no such host")
        }
        return try await provider.answer(request)
    }
}

/// Everything at once, at random, while time passes: the same in every run of one seed.
struct Chaos: Sendable {
    let seed: UInt64
    let rounds: Int
    let names: [AccountName]

    /// Things happen, up to six at a time. After each round the indexes of the lanes agree with the lanes.
    ///
    /// - Parameter happen: what happens: one of 32 things, to an account.
    /// - Returns: false if the sessions did not come to rest where that was waited for.
    func run(
        _ broker: Broker, _ clock: TestClock, happen: @escaping @Sendable (Int, AccountName) async -> Void
    ) async -> Bool {
        var random = SeededGenerator(seed: seed)
        var comesToRest = true
        for _ in 0..<rounds {
            let happenings = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                (Int.random(in: 0..<32, using: &random), names[Int.random(in: 0..<names.count, using: &random)])
            }
            await withTaskGroup(of: Void.self) { group in
                for (what, name) in happenings { group.addTask { await happen(what, name) } }
            }
            clock.advance(by: Int.random(in: 0...1_500, using: &random))
            _ = await broker.sessionManager.runDueTasks()
            #expect(await broker.sessionManager.lanes.misindexed == [])
            if Bool.random(using: &random) {
                comesToRest = await eventually { await broker.sessionManager.isIdle } && comesToRest
            }
        }
        return comesToRest
    }
}
