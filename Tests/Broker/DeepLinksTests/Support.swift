import BrokerCore
import DeepLinks
import OAuth
import OAuthSignIn
import RingbackBase
import SessionVault
import Synchronization
import Testing

@testable import BrokerTestSupport

/// A desk with a broker behind it, and time that passes when the test says so.
final class Desk: Sendable {
    private struct State {
        var started: [String] = []
        var facts: [BrokerFact] = []
        var failure: String?
    }
    private let state = Mutex(State())
    let clock = TestClock()
    let broker: Broker
    private let box = Mutex<DeepLinkRegistry?>(nil)

    static let account = "coin"

    /// - Parameter redirectURI: of the one account.
    init(_ schemes: [LinkScheme] = [], redirectURI: String? = "swisscoin://auth-callback") async throws {
        let callbackReceiver = CallbackReceiver(
            open: { template, _ throws(BrokerError) in template ?? "http://127.0.0.1:4711/callback" },
            close: { _, _ in },
            listeners: { [] })
        broker = Broker(vault: MemoryVault(), http: NoNetwork(), callbackReceiver: callbackReceiver)
        let registry = DeepLinkRegistry(
            broker: broker, clock: clock.clock, record: { [weak self] in self?.note($0) },
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

    var started: [String] { state.withLock { $0.started } }
    var facts: [BrokerFact] { state.withLock { $0.facts } }
    func failToStart(_ reason: String?) { state.withLock { $0.failure = reason } }

    private func start(_ scheme: String, _ url: Secret) -> String? {
        state.withLock { state in
            state.started.append("\(scheme) \(url.revealed())")
            return state.failure
        }
    }

    private func note(_ fact: BrokerFact) { state.withLock { $0.facts.append(fact) } }

    @discardableResult
    func bring(
        _ url: String, hasListener: Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> UInt64 {
        let reception = await registry.receive(url)
        guard case .kept(let link, let found) = reception else {
            Issue.record("\(url): \(reception)", sourceLocation: sourceLocation)
            throw Unexpected()
        }
        #expect(found == hasListener, sourceLocation: sourceLocation)
        #expect(link.url == Secret(url), sourceLocation: sourceLocation)
        return link.id
    }
}

struct NoNetwork: HTTPClient {
    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        throw .unreachable(host: "x", reason: "")
    }
}

extension LinkListener {
    func urls(within bound: Duration = .seconds(30)) async -> [String]? {
        guard case .links(let links) = await next(within: bound) else { return nil }
        return links.map { $0.url.revealed() }
    }
}
