import Synchronization
import TestSupport
import Testing

@testable import BrokerCore

private func at(_ milliseconds: Int) -> BootInstant { BootInstant(milliseconds: milliseconds) }

@Suite struct `A scheduler` {
    /// The same, without a thought for speed.
    private struct Model {
        var instants: [Int: BootInstant] = [:]
        var next: BootInstant? { instants.values.min() }
    }

    @Test(arguments: [1, 5, 40, 1_000])
    func `agrees with a list that is searched, over thousands of operations`(keys: Int) {
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
            else {
                Issue.record("It differs from the model.")
                return
            }
        }
    }

    @Test func `gives everything back once, in order`() {
        var random = SeededGenerator(seed: 7)
        var scheduler = Scheduler<Int>()
        for key in 0..<5_000 { scheduler.set(key, at: at(Int.random(in: 0..<1_000, using: &random))) }
        var last = at(Int.min)
        var seen: Set<Int> = []
        while let next = scheduler.next {
            #expect(next >= last)
            last = next
            guard let key = scheduler.popDue(at: next) else { break }
            #expect(seen.insert(key).inserted)
        }
        #expect(seen.count == 5_000)
        #expect(scheduler.count == 0)
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

/// A key that counts how often it is hashed.
private struct CountedKey: Hashable, Sendable {
    private static let hashes = Mutex(0)
    static var hashCount: Int { hashes.withLock { $0 } }
    let value: Int

    func hash(into hasher: inout Hasher) {
        CountedKey.hashes.withLock { $0 += 1 }
        hasher.combine(value)
    }
}
