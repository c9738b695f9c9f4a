import TestSupport
import Testing

@testable import OAuth

@Suite struct `The pace of questions` {
    @Test func `DEV-06: each slow_down adds five seconds, for good`() {
        var pace = DevicePace(interval: .seconds(5))
        #expect(pace.pause == .milliseconds(5_000))
        pace.note(.slowDown(interval: nil))
        pace.note(.pending)
        #expect(pace.interval == .seconds(10) && pace.pause >= .milliseconds(10_000))
        pace.note(.slowDown(interval: nil))
        #expect(pace.interval == .seconds(15) && pace.pause >= .milliseconds(15_000))
        for _ in 0..<10 { pace.note(.pending) }
        #expect(pace.interval == .seconds(15) && pace.pause >= .milliseconds(15_000))
    }

    @Test func `an interval that comes with slow_down counts if it is longer`() {
        var pace = DevicePace(interval: .seconds(5))
        pace.note(.slowDown(interval: .seconds(30)))
        #expect(pace.interval == .seconds(30))
        pace.note(.slowDown(interval: .seconds(1)))
        #expect(pace.interval == .seconds(35))
        pace.note(.slowDown(interval: .seconds(Int.max)))
        #expect(pace.interval == .seconds(1_800))
    }

    @Test func `DEV-08: without an answer the pauses double, up to two minutes, until there is one`() {
        var pace = DevicePace(interval: .seconds(5))
        let pauses: [Duration] = (0..<6).map { _ in
            pace.note(.unanswered(retryAfter: nil))
            return pace.pause
        }
        #expect(pauses == [10, 20, 40, 80, 120, 120].map { .seconds($0) })
        pace.note(.pending)
        #expect(pace.pause == .milliseconds(5_000))
        pace.note(.unanswered(retryAfter: .seconds(400)))
        #expect(pace.pause == .milliseconds(400_000))
    }

    @Test func `a pause is never shorter than the interval, however long that is`() {
        var pace = DevicePace(interval: .seconds(600))
        pace.note(.unanswered(retryAfter: nil))
        #expect(pace.pause == .milliseconds(600_000))
    }

    @Test func `DEV-13: a provider whose clock is a fifth too slow is satisfied after one slow_down`() {
        for start in [5, 10, 60] {
            var pace = DevicePace(interval: .seconds(start))
            var wanted = start
            var count = 0
            while pace.pause < .milliseconds(wanted * 1_200), count < 10 {
                count += 1
                wanted += 5
                pace.note(.slowDown(interval: nil))
            }
            #expect(count == 1)
        }
    }

    @Test func `in 10,000 random sequences of answers no question is early`() {
        for seed in 0..<UInt64(10_000) {
            var dice = SeededGenerator(seed: seed)
            let stated = Int.random(in: -10...100, using: &dice)
            let life = Int.random(in: 1...1_800, using: &dice)
            let interval = DevicePace.sensible(stated, within: life)
            // The rules, as the standard says them.
            var required = max(min(stated, life), 5)
            #expect(interval >= min(required, max(life - 5, 5)))
            required = interval
            var pace = DevicePace(interval: .seconds(interval))
            var silent = 0
            for _ in 0..<Int.random(in: 1...40, using: &dice) {
                var least = required * 1_000
                switch Int.random(in: 0..<4, using: &dice) {
                case 0:
                    pace.note(.slowDown(interval: nil))
                    required += 5
                    silent = 0
                    least = required * 1_000
                case 1:
                    let retryAfter = Bool.random(using: &dice) ? Int.random(in: 0...300, using: &dice) : nil
                    pace.note(.unanswered(retryAfter: retryAfter.map { .seconds($0) }))
                    silent += 1
                    least = max(least, min(least << min(silent, 16), 120_000), (retryAfter ?? 0) * 1_000)
                default:
                    pace.note(.pending)
                    silent = 0
                }
                #expect(pace.pause >= .milliseconds(least), "seed \(seed)")
                // Nor is anybody kept waiting without end.
                #expect(pace.pause <= .milliseconds(max(required * 1_250, 300_000)), "seed \(seed)")
            }
        }
    }
}
