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
}
