import Testing

@testable import BrokerCore

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
