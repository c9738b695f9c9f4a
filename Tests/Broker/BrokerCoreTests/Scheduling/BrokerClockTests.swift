import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

private let decade = 315_576_000

@Suite(.timeLimit(.minutes(2))) struct `Clocks that jump` {
    private static let names = (0..<50).map { House.named("account-\($0)") }
    private static let other = "https://other.example"

    /// Fifty accounts at one provider and one at another, all signed in. `providersClock`: the world's time.
    private func crowd(_ providersClock: TestClock? = nil) async throws -> House {
        let house = try await House(
            knowing: providersClock, also: { [try FakeProvider(Self.other, clock: providersClock ?? $0)] })
        await house.broker.configure(Self.accounts)
        try await house.signIn(all: Self.names)
        try await house.signIn(House.name, at: house.network.provider(Self.other))
        return house
    }

    private static var accounts: [Account] {
        names.map { House.account($0) } + [House.account(issuer: other)]
    }

    private func tell(_ what: String, _ house: House) async {
        let lost = await 51 - house.vault.sessions.count
        #expect(lost == 0)
        print("figure: \(what): sessions lost = \(lost)")
        print("figure: \(what): refresh requests for 50 sessions = \(house.refreshCount)")
    }

    private func states(_ broker: Broker) async -> Set<AccountState> { Set(await broker.accounts().map(\.state)) }

    @Test(arguments: [decade, -decade])
    func `PR-15: set by ten years while running, the wall clock costs nobody anything`(seconds: Int) async throws {
        let house = try await crowd()
        house.clock.setWall(by: seconds)
        await house.live(60)
        #expect(house.refreshCount == 0)
        for name in Self.names { _ = try await house.token(name) }
        let view = try await house.broker.account(Self.names[0])
        #expect(view.expiresAt.map { $0.seconds - house.clock.now } == 3_540)
        #expect(!view.isStale)
        await house.live(3_600, step: 5_000)
        #expect(house.refreshCount == 50)
        #expect(await states(house.broker) == [.authenticated])
        house.clock.setWall(by: -seconds)
        await house.live(60)
        #expect(house.refreshCount == 50)
        await tell("clock set by ten years while running", house)
    }

    @Test(arguments: [decade, -decade])
    func `PR-15: a wall clock that is wrong for hours loses no session, though it fits no ID token`(
        seconds: Int
    ) async throws {
        let world = TestClock()
        let house = try await House(knowing: world)
        try await house.signIn()
        house.clock.setWall(by: seconds)
        for _ in 0..<(3 * 360) {
            world.advance(by: 10)
            await house.live(10, step: 10_000)
        }
        // Tokens that rotate in answers which fit no clock: kept, one after the other, and not too often.
        #expect(try await house.view.subject == "alice")
        #expect(house.refreshCount <= 3 * 30)
        #expect(await house.vault.sessions.count == 1)
        house.clock.setWall(by: -seconds)
        for _ in 0..<40 {
            world.advance(by: 10)
            await house.live(10, step: 10_000)
        }
        #expect(try await house.view.error == nil)
        #expect(try await house.view.isStale == false)
    }

    @Test(arguments: [decade, -decade], [true, false])
    func `PR-15: a wall clock set by ten years across a restart loses no session and makes no burst`(
        seconds: Int, isSameBoot: Bool
    ) async throws {
        let house = try await crowd()
        house.clock.advance(by: 100)
        if !isSameBoot { house.clock.reboot() }
        house.clock.setWall(by: seconds)
        let broker = house.rebirth(bootID: isSameBoot ? "this boot" : "another boot")
        await broker.configure(Self.accounts)
        #expect(await eventually { await broker.sessionManager.isOpenAndIdle })
        await house.live(120, as: broker)
        // In the same boot nothing has changed; after another the wall clock's word is all there is, and a future that
        // lies ten years ahead makes every token old: once.
        let refreshed = isSameBoot || seconds < 0 ? 0 : 50
        #expect(house.refreshCount == refreshed)
        #expect(await states(broker) == [.authenticated])
        for name in Self.names {
            #expect(await error { try await broker.session(name, SessionQuery()) } == nil)
        }
        // No token lives longer than its provider said.
        await house.live(3_600, step: 5_000, as: broker)
        #expect(house.refreshCount == refreshed + 50)
        await tell("clock set by ten years across a restart", house)
    }

    @Test func `PR-15, RT-05: after a night's sleep every session is refreshed once, sixteen at a time`() async throws {
        let house = try await crowd()
        house.provider.hold(.token)
        house.clock.advance(by: 30_000)
        let sessionManager = house.broker.sessionManager
        _ = await sessionManager.runDueTasks()
        #expect(await house.provider.arrived(.token, 50 + 16))
        for _ in 0..<20 {
            house.clock.advance(by: 1)
            _ = await sessionManager.runDueTasks()
        }
        #expect(house.refreshCount == 16)
        // A provider that hangs holds up its own accounts alone.
        let second = try #require(house.network.provider(Self.other))
        #expect(await eventually { second.presented.count == 1 })
        #expect(await eventually { (try? await house.token()) != nil })
        house.provider.release(.token)
        #expect(await eventually { await sessionManager.isIdle })
        await house.live(20)
        #expect(house.refreshCount == 50)
        #expect(second.presented.count == 1)
        #expect(house.facts.names.count { $0 == "refreshSucceeded" } == 51)
        #expect(await states(house.broker) == [.authenticated])
        await house.live(600, step: 5_000)
        #expect(house.refreshCount == 50)
        await tell("a night's sleep", house)
    }
}

@Suite(.timeLimit(.minutes(2))) struct `Many callers` {
    @Test func `PR-16, RT-04: 500 callers over 200 expiries make 200 requests`() async throws {
        let house = try await House.signedIn()
        for expiry in 1...200 {
            house.clock.advance(by: 3_600)
            if expiry % 2 == 0 { house.provider.hold(.token) }
            let tokens = await withTaskGroup(of: String?.self) { group in
                for caller in 0..<500 {
                    let minValid = caller % 3 == 0 ? 60 : nil
                    group.addTask { try? await house.token(minValid: minValid) }
                }
                group.addTask {
                    _ = await house.broker.sessionManager.runDueTasks()
                    return nil
                }
                if expiry % 2 == 0 {
                    #expect(await house.provider.arrived(.token, 1 + expiry))
                    house.provider.release(.token)
                }
                return await group.reduce(into: [String]()) { if let token = $1 { $0.append(token) } }
            }
            #expect(tokens.count == 500)
            #expect(Set(tokens).count == 1)
        }
        #expect(await eventually { await house.broker.sessionManager.isIdle })
        #expect(house.refreshCount == 200)
        #expect(Set(house.provider.presented).count == 200)
        print("figure: refresh requests of 500 callers over 200 expiries, in process = \(house.refreshCount)")
    }
}

@Suite struct `Instants and durations` {
    @Test func `an instant that is moved stops at the ends of what can be written down`() {
        #expect(BootInstant.never + .seconds(1) == .never)
        #expect(BootInstant(milliseconds: .min) - .seconds(1) == BootInstant(milliseconds: .min))
        #expect(BootInstant(milliseconds: 5) + .milliseconds(-7) == BootInstant(milliseconds: -2))
        #expect(BootInstant.never - BootInstant(milliseconds: .min) > .seconds(Int64.max / 1_000))
    }

    @Test func `durations are rounded as their names say`() {
        #expect(Duration.milliseconds(1_001).secondsRoundedUp == 2)
        #expect(Duration.milliseconds(1_999).wholeSeconds == 1)
        #expect(Duration.milliseconds(-1).wholeSeconds == -1)
        #expect(Duration.milliseconds(-1).secondsRoundedUp == 0)
        #expect(Duration.seconds(Int64.max).wholeMilliseconds == .max)
        #expect(Duration.seconds(Int64.min).wholeMilliseconds == .min)
    }
}
