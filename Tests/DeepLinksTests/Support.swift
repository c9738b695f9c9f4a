import BrokerCore
import DeepLinks
import HTTPMessages
import OAuth
import OAuthSignIn
import Secrets
import SessionVault
import Synchronization
import Testing

/// A desk with a broker behind it, and time that passes when the test says so.
final class Desk: Sendable {
    private struct State {
        var boot = 50_000_000
        var sleepers: [(until: Int, signal: Promise<Void>)] = []
        var started: [String] = []
        var facts: [BrokerFact] = []
        var failure: String?
    }
    private let state = Mutex(State())
    let broker: Broker
    private let box = Mutex<DeepLinkRegistry?>(nil)

    static let account = "coin"

    /// - Parameter redirectURI: of the one account.
    init(_ schemes: [LinkScheme] = [], redirectURI: String? = "swisscoin://auth-callback") async throws {
        let callbackReceiver = CallbackReceiver(
            open: { template, _ throws(BrokerError) in template ?? "http://127.0.0.1:4711/callback" }, close: { _ in },
            listeners: { [] })
        broker = Broker(vault: MemoryVault(), http: NoNetwork(), callbackReceiver: callbackReceiver)
        let clock = BrokerClock(
            now: { [weak self] in (self?.boot ?? 0) / 1_000 }, boot: { [weak self] in self?.boot ?? 0 },
            sleep: { [weak self] in
                guard let self else { throw CancellationError() }
                try await self.sleep($0)
            })
        let registry = DeepLinkRegistry(
            broker: broker, clock: clock, record: { [weak self] in self?.note($0) },
            startApplication: { [weak self] in self?.start($0, $1) })
        box.withLock { $0 = registry }
        try await configure(schemes, redirectURI: redirectURI)
    }

    func configure(_ schemes: [LinkScheme], redirectURI: String? = nil) async throws {
        let metadata = try ProviderMetadata(
            authorizationEndpoint: "https://id.example/authorize", tokenEndpoint: "https://id.example/token")
        let account = Account(
            name: try #require(AccountName(Desk.account)), provider: "oauth2", source: "test",
            kind: OAuthAccount(endpoints: .fixed(metadata)), clientID: "ringback", redirectURI: redirectURI)
        await broker.configure([account])
        await registry.configure(schemes)
    }

    var registry: DeepLinkRegistry {
        guard let registry = box.withLock({ $0 }) else { preconditionFailure("the desk is made with this") }
        return registry
    }

    /// What was started, as `SCHEME URL`.
    var started: [String] { state.withLock { $0.started } }
    var facts: [BrokerFact] { state.withLock { $0.facts } }
    func failToStart(_ reason: String?) { state.withLock { $0.failure = reason } }

    var boot: Int { state.withLock { $0.boot } }
    var sleepers: Int { state.withLock { $0.sleepers.count } }

    func advance(milliseconds: Int) {
        let woken = state.withLock { state in
            state.boot += milliseconds
            let woken = state.sleepers.filter { $0.until <= state.boot }
            state.sleepers.removeAll { $0.until <= state.boot }
            return woken
        }
        for sleeper in woken { sleeper.signal.fulfil(()) }
    }

    private func sleep(_ duration: Duration) async throws {
        let signal = Promise<Void>()
        let isOver = state.withLock { state in
            let until = state.boot + Int(duration / .milliseconds(1))
            guard until > state.boot else { return true }
            state.sleepers.append((until, signal))
            return false
        }
        if isOver { return }
        guard await signal.wait() != nil else { throw CancellationError() }
    }

    private func start(_ scheme: String, _ url: Secret) -> String? {
        state.withLock { state in
            state.started.append("\(scheme) \(url.revealed())")
            return state.failure
        }
    }

    private func note(_ fact: BrokerFact) { state.withLock { $0.facts.append(fact) } }

    /// Brings a link that is one; its name.
    @discardableResult
    func bring(_ url: String, isHeard: Bool, sourceLocation: SourceLocation = #_sourceLocation) async throws -> UInt64 {
        let reception = await registry.receive(url)
        guard case .kept(let link, let found) = reception else {
            Issue.record("\(url): \(reception)", sourceLocation: sourceLocation)
            throw Unexpected()
        }
        #expect(found == isHeard, sourceLocation: sourceLocation)
        #expect(link.url == Secret(url), sourceLocation: sourceLocation)
        return link.id
    }
}

struct Unexpected: Error {}

struct NoNetwork: HTTPClient {
    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        throw .unreachable(host: "x", reason: "")
    }
}

extension LinkListener {
    /// The URLs that it is told next.
    func urls(within bound: Duration = .seconds(30)) async -> [String]? {
        guard case .links(let links) = await next(within: bound) else { return nil }
        return links.map { $0.url.revealed() }
    }
}

/// Waits for what other tasks bring about; false if it does not come within a minute.
func eventually(_ condition: () async -> Bool) async -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while await !condition() {
        guard ContinuousClock.now < end else { return false }
        await Task.yield()
    }
    return true
}
