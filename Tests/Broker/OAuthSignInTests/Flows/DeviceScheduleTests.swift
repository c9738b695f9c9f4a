import OAuth
import TestSupport
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `The schedule of a device's questions` {
    /// One conversation by a virtual clock, with a provider that keeps the rules' own books.
    private struct Conversation {
        var dice: SeededGenerator
        var now: Int
        var schedule: DeviceSchedule
        /// Milliseconds that must lie between the last answer and the next question.
        var required: Int
        var interval: Int
        var silent = 0
        var receivedAt: Int
        let end: Int
        var questions = 0
        var mistakes: [String] = []

        init(seed: UInt64) {
            dice = SeededGenerator(seed: seed)
            now = Int.random(in: 0...1_000_000_000, using: &dice)
            let life = Int.random(in: 1...1_800, using: &dice)
            let seconds = DevicePace.sensible(Int.random(in: -5...60, using: &dice), within: life)
            (interval, required) = (seconds * 1_000, seconds * 1_000)
            (receivedAt, end) = (now, now + life * 1_000)
            schedule = DeviceSchedule(
                interval: .seconds(seconds), life: .seconds(life), receivedAt: BootInstant(milliseconds: now))
        }

        mutating func run() {
            for _ in 0..<20_000 {
                switch schedule.step(at: BootInstant(milliseconds: now)) {
                case .over: return
                case .sleep(let pause): sleep(pause.wholeMilliseconds)
                case .ask: ask()
                }
            }
            mistakes.append("no end")
        }

        private mutating func sleep(_ milliseconds: Int) {
            if milliseconds < 1 || milliseconds > 30_000 { mistakes.append("a sleep of \(milliseconds)") }
            // Timers are late, and now and then the machine sleeps too.
            now += milliseconds + Int.random(in: 0...40, using: &dice)
            if Int.random(in: 0..<50, using: &dice) == 0 { now += Int.random(in: 0...900_000, using: &dice) }
        }

        private mutating func ask() {
            questions += 1
            if now - receivedAt < required { mistakes.append("question \(questions) is early") }
            // A night's suspend and a late timer are the most that may lie between.
            if now - receivedAt > required + 960_000 { mistakes.append("question \(questions) is late") }
            if now > end { mistakes.append("question \(questions) is after the end") }
            // The provider takes its time.
            now += Int.random(in: 0...20_000, using: &dice)
            receivedAt = now
            let event: DevicePace.Event
            required = interval
            switch Int.random(in: 0..<6, using: &dice) {
            case 0:
                interval += 5_000
                (required, silent, event) = (interval, 0, .slowDown(interval: nil))
            case 1:
                let stated = Int.random(in: 0...90, using: &dice)
                interval = max(interval + 5_000, stated * 1_000)
                (required, silent, event) = (interval, 0, .slowDown(interval: .seconds(stated)))
            case 2:
                let retryAfter = Bool.random(using: &dice) ? Int.random(in: 0...200, using: &dice) : nil
                silent += 1
                required = max(interval, min(interval << min(silent, 16), 120_000), (retryAfter ?? 0) * 1_000)
                event = .unanswered(retryAfter: retryAfter.map { .seconds($0) })
            default: (silent, event) = (0, .pending)
            }
            schedule.answered(event, at: BootInstant(milliseconds: now))
        }
    }

    @Test func `in 10,000 random conversations by a virtual clock no question is early, late or one too many`() {
        var questions = 0
        for seed in 0..<UInt64(10_000) {
            var conversation = Conversation(seed: seed)
            conversation.run()
            questions += conversation.questions
            #expect(conversation.mistakes.isEmpty, "seed \(seed): \(conversation.mistakes)")
        }
        // There was something to see.
        #expect(questions > 50_000)
    }

    @Test func `DEV-15: an hour of suspend is one question, if the code still lives`() {
        let start = BootInstant(milliseconds: 0)
        var schedule = DeviceSchedule(interval: .seconds(5), life: .seconds(4_000), receivedAt: start)
        #expect(schedule.step(at: start) == .sleep(.milliseconds(5_001)))
        #expect(schedule.step(at: start + .seconds(5)) == .sleep(.milliseconds(1)))
        #expect(schedule.step(at: start + .seconds(3_600)) == .ask)
        let answered = start + .milliseconds(3_600_100)
        schedule.answered(.pending, at: answered)
        #expect(schedule.step(at: answered) == .sleep(.milliseconds(5_001)))
        #expect(schedule.step(at: start + .milliseconds(4_000_001)) == .over)
        let short = DeviceSchedule(interval: .seconds(5), life: .seconds(600), receivedAt: start)
        #expect(short.step(at: start + .seconds(3_600)) == .over)
    }

    @Test func `a sleep is bounded, and codes that expire before the first request end the schedule`() {
        let start = BootInstant(milliseconds: 0)
        let slow = DeviceSchedule(interval: .seconds(300), life: .seconds(1_800), receivedAt: start)
        #expect(slow.step(at: start) == .sleep(.seconds(30)))
        #expect(DeviceSchedule(interval: .seconds(5), life: .seconds(4), receivedAt: start).step(at: start) == .over)
    }
}
