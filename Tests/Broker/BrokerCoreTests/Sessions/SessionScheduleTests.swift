import RingbackBase
import Synchronization
import TestSupport
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(2))) struct `Refreshing before expiry` {
    static func account(margin: Int? = nil, warnings: [Int]? = nil) -> Account {
        var account = House.account()
        account.refreshMargin = margin.map { .seconds($0) }
        if let warnings { account.sessionWarnings = warnings.map { .seconds($0) } }
        return account
    }

    private func house(lifetime: Int?, margin: Int? = nil) async throws -> House {
        let house = try await House()
        await house.broker.configure([Self.account(margin: margin)])
        house.provider.behave { $0.lifetime = lifetime }
        try await house.signIn()
        return house
    }

    @Test(
        arguments: [
            // Lifetime, configured margin, the margin that follows (seconds).
            (3_600, nil, 300.0), (1_000, nil, 200), (86_400, nil, 300), (100, nil, 20), (5, nil, 1), (3_600, 60, 60),
            (3_600, 1_000, 1_000), (100, 100, 50), (100, 5_000, 50), (100, 0, 0),
        ] as [(Int, Int?, Double)])
    func `RT-05: keeps a margin, earlier by chance by at most a fifth of it`(
        lifetime: Int, configured: Int?, margin: Double
    ) async throws {
        let house = try await house(lifetime: lifetime, margin: configured)
        var seen: Set<BootInstant> = []
        for _ in 0..<50 {
            await house.broker.sessionManager.plan(House.name)
            let due = try #require(await house.broker.sessionManager.schedule.tasks[.refresh(House.name)])
            let before = (house.clock.bootInstant + .seconds(lifetime) - due).wholeMilliseconds
            #expect((Int(margin * 1_000)...Int(margin * 1_200)).contains(before))
            seen.insert(due)
        }
        #expect(seen.count > 1 || margin == 0)
    }

    @Test(arguments: [3_600, 600, 60])
    func `RT-05: asks once for each lifetime, and callers never wait`(lifetime: Int) async throws {
        let house = try await house(lifetime: lifetime)
        let hours = 2
        for _ in 0..<(hours * 3_600) {
            await house.live(1)
            guard let held = house.broker.snapshot.current("work") else {
                #expect(lifetime <= 75, "Nothing is on the board.")
                continue
            }
            #expect((held.remaining ?? 0) > 0)
        }
        let least = hours * 3_600 / lifetime
        #expect((least...(least * 3 / 2)).contains(house.refreshCount))
        #expect(house.facts.names.count { $0 == "refreshFailed" } == 0)
    }

    @Test(arguments: [0, 1, 2, 3, 4, 5])
    func `tokens of a few seconds make no burst`(lifetime: Int) async throws {
        let house = try await house(lifetime: lifetime)
        let seconds = 240
        var most = 0
        for _ in 0..<seconds {
            let before = house.refreshCount
            await house.live(1, step: 100)
            most = max(most, house.refreshCount - before)
        }
        #expect(most <= 1)
        // At least four tenths of each token's life pass before the next is asked for.
        if lifetime > 0 { #expect(house.refreshCount <= seconds * 10 / (4 * lifetime)) }
        // What is dead before it could be renewed is renewed for those alone who ask.
        if lifetime <= 1 { #expect(house.refreshCount == 0) } else { #expect(house.refreshCount > 0) }
    }

    @Test(arguments: [(nil, true), (3_600, false)] as [(Int?, Bool)])
    func `leaves alone what has no lifetime or cannot be renewed`(lifetime: Int?, isRefreshable: Bool) async throws {
        let house = try await House()
        house.provider.behave {
            $0.lifetime = lifetime
            $0.givesRefreshToken = isRefreshable
        }
        try await house.signIn()
        await house.live(100_000, step: 50_000)
        #expect(house.refreshCount == 0)
        #expect(await house.broker.sessionManager.schedule.tasks.next == nil)
    }

    @Test func `a request that the daemon itself broke off is not repeated in a burst`() async throws {
        let house = try await House.expired()
        for _ in 0..<200 { house.provider.script(.token, .fail(.cancelled)) }
        await house.live(20, step: 50)
        #expect(house.refreshCount <= 21)
    }

    @Test func `a sign-out takes every task away, and a sign-in brings them back`() async throws {
        let house = try await house(lifetime: 3_600)
        #expect(await house.broker.sessionManager.schedule.tasks.count == 1)
        _ = try await house.broker.signOut(House.name)
        #expect(await house.broker.sessionManager.schedule.tasks.count == 0)
        try await house.signIn()
        #expect(await house.broker.sessionManager.schedule.tasks.count == 1)
    }

    @Test func `the loop sleeps until the next task, and is woken for one that comes sooner`() async throws {
        let house = try await House()
        let (pause, signal) = await house.broker.sessionManager.runDueTasks()
        #expect(pause == .seconds(30))
        #expect(signal.value == nil)
        try await house.signIn()
        #expect(signal.value != nil)
        house.clock.advance(by: 3_600 - 361)
        let (next, later) = await house.broker.sessionManager.runDueTasks()
        #expect(next > .zero && next <= .seconds(30))
        #expect(later.value == nil)
    }

    @Test func `the loop refreshes by itself and ends when it is cancelled`() async throws {
        let house = try await House()
        let keeping = Task { await house.broker.keepFresh() }
        try await house.signIn()
        house.clock.advance(by: 3_600)
        // The loop looks again within half a minute; something that is due at once wakes it now.
        await house.broker.sessionManager.put(.refresh(House.name), at: house.clock.bootInstant - .seconds(1_000))
        #expect(await house.provider.arrived(.token, 2))
        keeping.cancel()
        await keeping.value
    }

    @Test func `the loop waits for a vault that nobody has opened, and ends all the same`() async throws {
        let house = try await House()
        let broker = house.rebirth()
        let keeping = Task { await broker.keepFresh() }
        keeping.cancel()
        await keeping.value
    }

    /// What was said of the session's end: the seconds left, each time.
    private func warnings(
        _ house: House, for seconds: Int, step: Int = 1_000, doing: (Int) async throws -> Void = { _ in }
    ) async throws -> [Int] {
        let stream = try await house.broker.events(of: nil, after: nil).live
        var told: [Int] = []
        for second in 0..<(seconds * 1_000 / step) {
            try await doing(second)
            await house.live(step / 1_000, step: step)
            guard case .events(let events) = await stream.next(within: .zero) else { continue }
            for (_, event) in events where event.kind == .sessionEnding {
                told.append((event.endsAt?.seconds ?? 0) - event.at.seconds)
            }
        }
        return told
    }

    private func timeboxed(_ seconds: Int, warnings: [Int]? = nil) async throws -> House {
        let house = try await House()
        await house.broker.configure([Self.account(warnings: warnings)])
        house.provider.behave { $0.lifetime = nil }
        house.provider.script(.token, .setting("refresh_expires_in", .integer(seconds)))
        try await house.signIn()
        return house
    }

    @Test func `ten minutes and one minute before, once each`() async throws {
        let house = try await timeboxed(1_800)
        let end = WallInstant(seconds: house.clock.now + 1_800)
        #expect(try await warnings(house, for: 1_900) == [600, 60])
        let ends = house.facts.all.compactMap { fact -> WallInstant? in
            if case .sessionEnding(House.name, let end) = fact { end } else { nil }
        }
        #expect(ends == [end, end])
    }

    @Test func `as configured`() async throws {
        let house = try await timeboxed(1_800, warnings: [1_000, 5, 3_600])
        #expect(try await warnings(house, for: 1_900) == [1_000, 5])
        let silent = try await timeboxed(1_800, warnings: [])
        #expect(try await warnings(silent, for: 1_900) == [])
    }

    @Test func `a reload changes what is still to be said`() async throws {
        let house = try await timeboxed(1_800)
        let told = try await warnings(house, for: 1_900) { second in
            if second == 10 { await house.broker.configure([Self.account(warnings: [300])]) }
        }
        #expect(told == [300])
    }

    @Test func `a refresh that extends the session moves them, and one that says nothing does not`() async throws {
        let house = try await timeboxed(900)
        let told = try await warnings(house, for: 2_000) { second in
            if second == 100 { _ = try await house.broker.refresh(House.name, isForced: true) }
            if second == 200 {
                house.provider.script(.token, .setting("refresh_expires_in", 1_500))
                _ = try await house.broker.refresh(House.name, isForced: true)
            }
            if second == 1_400 { _ = try await house.broker.refresh(House.name, isForced: true) }
        }
        #expect(told == [600, 60])
    }

    @Test func `a warning that fell due during a suspend is given although a caller refreshes first`() async throws {
        let house = try await timeboxed(1_800)
        let stream = try await house.broker.events(of: nil, after: nil).live
        house.clock.advance(by: 1_300)
        _ = try await house.broker.refresh(House.name, isForced: true)
        await house.runDueTasks()
        guard case .events(let events) = await stream.next(within: .zero) else { throw Unexpected() }
        #expect(events.count { $0.event.kind == .sessionEnding } == 1)
        #expect(try await warnings(house, for: 600) == [60])
    }
}

extension SessionManager {
    fileprivate func put(_ task: ScheduledTask, at instant: BootInstant) { schedule.set(task, at: instant) }
}

private func at(_ milliseconds: Int) -> BootInstant { BootInstant(milliseconds: milliseconds) }

@Suite struct `A scheduler` {
    private struct Model {
        var instants: [Int: BootInstant] = [:]
        var next: BootInstant? { instants.values.min() }
    }

    @Test(arguments: [1, 5, 40, 1_000])
    func `agrees with a list that is searched, over thousands of operations`(keys: Int) throws {
        var random = SeededGenerator(seed: UInt64(keys))
        var scheduler = Scheduler<Int>()
        var model = Model()
        for _ in 0..<20_000 {
            let key = Int.random(in: 0..<keys, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<5:
                let instant = at(Int.random(in: -20...200, using: &random))
                scheduler.set(key, at: instant)
                model.instants[key] = instant
            case 5:
                scheduler.remove(key)
                model.instants[key] = nil
            default:
                let now = at(Int.random(in: -30...100, using: &random))
                if let due = scheduler.popDue(at: now) {
                    let instant = model.instants.removeValue(forKey: due)
                    #expect(instant != nil && instant.map { due in model.next.map { due <= $0 } ?? true } == true)
                    #expect(instant.map { $0 <= now } == true)
                } else {
                    #expect(model.next.map { $0 > now } ?? true)
                }
            }
            guard scheduler.count == model.instants.count, scheduler.next == model.next,
                scheduler[key] == model.instants[key]
            else { throw Unexpected("It differs from the model.") }
        }
        while let next = scheduler.next, let key = scheduler.popDue(at: next) {
            #expect(model.instants.removeValue(forKey: key) == next && model.next.map { next <= $0 } ?? true)
        }
        #expect(scheduler.count == 0 && model.instants.isEmpty)
    }

    @Test func `does not tell of what is not due, nor of what is not there`() {
        var scheduler = Scheduler<String>()
        #expect(scheduler.popDue(at: .never) == nil)
        scheduler.remove("a")
        scheduler.set("a", at: at(5))
        #expect(scheduler.popDue(at: at(4)) == nil)
        #expect(scheduler.popDue(at: at(5)) == "a")
        #expect(scheduler["a"] == nil)
        scheduler.set("far", at: .never)
        scheduler.set("past", at: at(Int.min))
        #expect(scheduler.next == at(Int.min))
    }

    /// Counts, for each operation, how often keys were looked up: places are written as items move.
    @Test func `moves one key among 100,000 in a number of steps that grows with the logarithm`() {
        var random = SeededGenerator(seed: 11)
        var scheduler = Scheduler<CountedKey>()
        let keys = (0..<100_000).map { CountedKey(value: $0) }
        for key in keys { scheduler.set(key, at: at(Int.random(in: 0..<1_000_000, using: &random))) }
        var most = 0
        for _ in 0..<2_000 {
            let key = keys[Int.random(in: 0..<keys.count, using: &random)]
            let before = CountedKey.hashCount
            scheduler.set(key, at: at(Int.random(in: 0..<1_000_000, using: &random)))
            most = max(most, CountedKey.hashCount - before)
        }
        // Seventeen levels, two places written at each, one look-up before.
        #expect(most <= 2 * 17 + 4)
    }
}

private struct CountedKey: Hashable, Sendable {
    private static let hashes = Mutex(0)
    static var hashCount: Int { hashes.withLock { $0 } }
    let value: Int

    func hash(into hasher: inout Hasher) {
        CountedKey.hashes.withLock { $0 += 1 }
        hasher.combine(value)
    }
}
