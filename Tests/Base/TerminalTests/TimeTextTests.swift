import Testing

@testable import Terminal

@Suite struct `Time text` {
    @Test(arguments: [(-5, "0:00"), (0, "0:00"), (9, "0:09"), (581, "9:41"), (3_600, "1:00:00"), (3_723, "1:02:03")])
    func `a count-down reads like a clock`(seconds: Int, expected: String) {
        #expect(TimeText.clock(seconds) == expected)
    }

    @Test(arguments: [
        (-1, "0 s"), (45, "45 s"), (119, "119 s"), (120, "2 min"), (3_599, "59 min"), (7_200, "2 h"),
        (12_000, "3 h 20 min"), (172_800, "2 days"),
    ])
    func `a span has one or two units`(seconds: Int, expected: String) {
        #expect(TimeText.span(seconds) == expected)
    }

    @Test func `validity says what is left, that it is over, or that nobody knows`() {
        #expect(TimeText.validity(until: 1_600, now: 1_000) == "for 10 min")
        #expect(TimeText.validity(until: 1_000, now: 1_000) == "expired")
        #expect(TimeText.validity(until: nil, now: 1_000) == "no stated end")
        #expect(TimeText.phrase(until: 1_600, now: 1_000) == "valid for 10 min")
        #expect(TimeText.phrase(until: 1_000, now: 1_000) == "expired")
        #expect(TimeText.phrase(until: nil, now: 1_000) == "without a stated end")
        #expect(TimeText.validity(until: .max, now: -1).hasPrefix("for "))
    }

    @Test func `a time of day has six digits`() {
        #expect(TimeText.timeOfDay(0).utf8.count == 8)
    }

    @Test func `a day and its time sort as text`() {
        let text = TimeText.dateAndTime(1_800_000_000)
        #expect(TimeText.dateAndMinute(1_800_000_000) == String(text.dropLast(3)))
        #expect(text.hasPrefix("2027-01-1") && text.hasSuffix(" " + TimeText.timeOfDay(1_800_000_000)))
        #expect(text.utf8.count == 19 && text < TimeText.dateAndTime(1_800_086_400))
    }
}
