import OAuth
import RingbackBase
import SessionVault
import Synchronization
import Testing

@testable import BrokerCore
@testable import OAuthSignIn

/// A broker with everything around it: provider, vault, clock and door.
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
        knowing providersClock: TestClock? = nil, also others: (TestClock) throws -> [FakeProvider] = { _ in [] }
    ) async throws {
        provider = try FakeProvider(clock: providersClock ?? clock)
        network = FakeNetwork(try [provider] + others(clock))
        broker = Broker(
            vault: vault, http: network, callbackReceiver: doors.callbackReceiver, work: work, clock: clock.clock,
            record: facts.record)
        await broker.configure([House.account()])
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

    /// The whole walk: sign-in, consent, callback.
    @discardableResult
    func signIn(
        _ name: AccountName = House.name, as subject: String = "alice", switching: Bool = false,
        at other: FakeProvider? = nil
    ) async throws -> CallbackVerdict {
        let flow = try await broker.signIn(name, SignInRequest(switchesSubject: switching)).flow
        return await broker.receive(try (other ?? provider).consent(flow.authorizationURL, as: subject))
    }

    /// A house where alice is signed in and her access token has expired.
    static func expired() async throws -> House {
        let house = try await House()
        try await house.signIn()
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

    /// What goes wrong when a token is asked for; nil if nothing does.
    func failure(minValid: Int? = nil, _ name: AccountName = House.name) async -> BrokerError? {
        await error { () throws(BrokerError) in try await token(minValid: minValid, name) }
    }

    /// The same for any query.
    func failure(_ query: SessionQuery) async -> BrokerError? {
        await error { () throws(BrokerError) in try await broker.session(House.name, query) }
    }

    /// What goes wrong in an explicit refresh.
    func refreshFailure(isForced: Bool = false) async -> BrokerError? {
        await error { () throws(BrokerError) in try await broker.refresh(House.name, isForced: isForced) }
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

extension BrokerError {
    /// The name of the case, as in `conflict` or `provider.unproved`.
    var kind: String {
        if case .provider(let failure) = self { return "provider.\(BrokerError.label(of: failure))" }
        return BrokerError.label(of: self)
    }

    /// The member of the request that is invalid.
    var field: String? { if case .invalid(let field, _) = self { field } else { nil } }

    private static func label(of value: Any) -> String {
        Mirror(reflecting: value).children.first?.label ?? "\(value)"
    }
}

/// The error of an expression, or nil.
func thrown<Value>(by call: @autoclosure () async throws(BrokerError) -> Value) async -> BrokerError? {
    await error(call)
}

/// The error of a call, or nil.
func error<Value>(_ call: () async throws(BrokerError) -> Value) async -> BrokerError? {
    do throws(BrokerError) {
        _ = try await call()
        return nil
    } catch {
        return error
    }
}
