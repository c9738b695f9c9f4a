import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(2))) struct `An outage of the provider` {
    static let faults: [FakeProvider.Turn] = [
        .status(503), .status(500, "<html>"), .fail(.unreachable(host: "id.example", reason: "no route")),
        .fail(.timedOut(host: "id.example")), .status(200, "<html>Sign in to the hotel's network</html>"),
        .status(404), .status(429), .status(400, #"{"error":"invalid_client"}"#),
    ]

    private func breakDown(_ house: House, _ turn: FakeProvider.Turn, _ count: Int = 2_000) {
        for endpoint in FakeProvider.Endpoint.allCases {
            for _ in 0..<count { house.provider.script(endpoint, turn) }
        }
    }

    /// The most requests in any hour, of those that came after the first `skipped` of them.
    private func most(_ instants: [Int]) -> Int {
        instants.indices.map { start in
            instants[start...].count { $0 < instants[start] + 3_600_000 }
        }.max() ?? 0
    }

    /// When requests came in while time passed, with callers who never give up.
    private func endure(_ house: House, hours: Int, as broker: Broker? = nil) async -> [Int] {
        var instants: [Int] = []
        for _ in 0..<(hours * 720) {
            let before = house.provider.requests.count
            await house.live(5, step: 5_000, as: broker)
            _ = try? await (broker ?? house.broker).session(House.name, SessionQuery())
            instants += Array(repeating: house.clock.boot, count: house.provider.requests.count - before)
        }
        return instants
    }

    @Test(arguments: faults.indices)
    func `PR-20, PR-21: costs it at most thirty requests an hour and session, metadata and all`(
        index: Int
    ) async throws {
        let house = try await House.signedIn()
        house.clock.advance(by: 3_000)
        breakDown(house, Self.faults[index])
        let instants = await endure(house, hours: 6)
        #expect(most(instants) <= 30)
        #expect(instants.count > 60)
        let view = try await house.view
        #expect(view.state == .authenticated)
        #expect(view.isStale)
        #expect(view.subject == "alice")
        #expect(view.error != nil)
        #expect(await house.vault.sessions.count == 1)
    }

    @Test(arguments: faults.indices)
    func `that lasts since before the start costs no more, and no session`(index: Int) async throws {
        let house = try await House.expired()
        let broker = house.rebirth()
        breakDown(house, Self.faults[index])
        await broker.configure([House.account()])
        #expect(await eventually { await broker.sessionManager.isOpenAndIdle })
        let instants = await endure(house, hours: 4, as: broker)
        // While nothing is known of the provider, an answer that is no metadata sends the daemon to both places.
        let isGarbage = [4, 5, 7].contains(index)
        #expect(most(instants) <= (isGarbage ? 2 * 24 : 30))
        #expect(try await broker.account(House.name).isStale)
        #expect(try await broker.account(House.name).subject == "alice")
    }

    @Test func `ends by itself: the session is renewed within five minutes of its end`() async throws {
        let house = try await House.expired()
        breakDown(house, .status(503), 12)
        await house.live(3_600, step: 5_000)
        #expect(try await house.view.isStale == false)
        #expect(try await house.view.error == nil)
        #expect(house.facts.names.contains("refreshSucceeded"))
    }

    @Test func `PR-21: with Retry-After is not asked before by callers or the network's return`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .status(503, retryAfter: 1_000))
        #expect(await house.failure(minValid: 60) == .provider(.unavailable(status: 503, retryAfter: 1_000)))
        for _ in 0..<99 {
            await house.live(10, step: 10_000)
            await house.broker.networkReturned()
            _ = await house.refreshFailure(isForced: true)
        }
        #expect(house.refreshCount == 1)
        await house.live(10, step: 5_000)
        #expect(house.refreshCount == 2)
        #expect(try await house.view.isStale == false)
    }

    @Test func `PR-21: with Retry-After is not asked by refreshes that wait behind the one that got it`() async throws {
        let house = try await House.expired()
        house.provider.hold(.token)
        house.provider.script(.token, .status(503, retryAfter: 1_000))
        let first = Task { await house.failure(minValid: 60) }
        #expect(await house.provider.arrived(.token, 2))
        let others = ["email", "openid"].map { scope in
            Task {
                let query = SessionQuery { $0.key = TokenKey(scopes: [scope]) }
                return await house.failure(query)
            }
        }
        let manager = house.broker.sessionManager
        #expect(await eventually { await manager.lanes[House.name]?.state.renewal.running.count == 3 })
        house.provider.release(.token)
        for caller in [first] + others {
            #expect(await caller.value == .provider(.unavailable(status: 503, retryAfter: 1_000)))
        }
        #expect(house.refreshCount == 1)
        await house.live(1_010, step: 10_000)
        #expect(house.refreshCount == 2)
    }

    @Test
    func `PR-21: with Retry-After is not asked before, though the vault was locked and the account removed meanwhile`()
        async throws
    {
        let house = try await House.expired()
        house.provider.script(.token, .status(503, retryAfter: 1_000))
        #expect(await house.failure(minValid: 60) == .provider(.unavailable(status: 503, retryAfter: 1_000)))
        try await house.broker.lockVault()
        try await house.broker.unlockVault(passphrase: nil)
        await house.live(100, step: 10_000)
        await house.broker.configure([])
        await house.broker.configure([House.account()])
        await house.live(100, step: 10_000)
        _ = await house.refreshFailure(isForced: true)
        #expect(house.refreshCount == 1)
        await house.live(810, step: 10_000)
        #expect(house.refreshCount == 2)
    }

    @Test func `is over for those without a route as soon as the network is back`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .fail(.unreachable(host: "h", reason: "r")))
        await house.runDueTasks()
        #expect(house.refreshCount == 1)
        #expect(try await house.view.isStale)
        let (_, signal) = await house.broker.sessionManager.runDueTasks()
        await house.broker.networkReturned()
        #expect(signal.value != nil)
        await house.runDueTasks()
        #expect(house.refreshCount == 2)
        #expect(try await house.view.isStale == false)
    }
}

@Suite struct `Back-off after a failure` {
    private func at(_ milliseconds: Int) -> BootInstant { BootInstant(milliseconds: milliseconds) }
    private let down = BrokerError.provider(.unavailable(status: 500, retryAfter: nil))

    @Test func `PR-21: grows to five minutes and no further`() {
        for _ in 0..<20 {
            var backoff = Backoff()
            for failures in 1...20 {
                let now = failures * 3_600_001
                backoff.note(down, at: at(now))
                #expect(backoff.refusal(at: at(now)) == down)
                #expect(backoff.refusal(at: at(now + 300_000)) == nil)
                if failures > 9 { #expect(backoff.refusal(at: at(now + 149_999)) == down) }
            }
        }
    }

    @Test func `the provider's word counts down`() {
        var backoff = Backoff()
        backoff.note(.provider(.unavailable(status: 503, retryAfter: 600)), at: at(0))
        #expect(backoff.refusal(at: at(400_000)) == .provider(.unavailable(status: 503, retryAfter: 200)))
        #expect(backoff.refusalByProvider(at: at(600_000)) == nil)
        backoff.note(.provider(.rateLimited(retryAfter: Int.max)), at: at(0))
        #expect(backoff.refusalByProvider(at: at(86_400_000)) == nil)
    }

    @Test func `PR-21: a session asks at most thirty times an hour, whoever asks`() {
        for step in [1, 7_000, 100_000] {
            var backoff = Backoff()
            var now = 1_000
            var requests: [Int] = []
            while now < 4 * 3_600_000 {
                if backoff.refusal(at: at(now)) == nil {
                    requests.append(now)
                    backoff.note(down, at: at(now))
                    // The network comes and goes all the time.
                    if step > 1 { backoff.allowEarlyRetry(at: at(now)) }
                }
                now = max(now + step, step > 1 ? now : backoff.until.milliseconds)
            }
            for start in requests {
                #expect(requests.count { $0 >= start && $0 < start + 3_600_000 } <= 30)
            }
            #expect(requests.count > 40)
        }
    }

    @Test func `what fails here is tried again within half a minute`() {
        var backoff = Backoff()
        for _ in 0..<100 { backoff.note(.vaultFailed(.session(.noRoom(cause: .locked))), at: at(0)) }
        #expect(backoff.refusal(at: at(30_000)) == nil)
    }

    @Test func `relenting never goes before the provider's word`() {
        var backoff = Backoff()
        backoff.note(.provider(.rateLimited(retryAfter: 60)), at: at(0))
        backoff.allowEarlyRetry(at: at(1_000))
        #expect(backoff.refusal(at: at(59_000)) != nil)
        backoff.note(.provider(.unreachable(host: "h", reason: .any)), at: at(60_000))
        // Once a minute at most.
        backoff.allowEarlyRetry(at: at(60_001))
        #expect(backoff.refusal(at: at(60_001)) != nil)
        backoff.allowEarlyRetry(at: at(61_001))
        #expect(backoff.refusal(at: at(61_001)) == nil)
    }
}
