import RingbackClient
import Testing

@Suite struct `An instant of the client library` {
    private func text(_ seconds: Int) -> String { WallInstant(secondsSince1970: seconds).description }

    @Test func `reads as RFC 3339 in UTC`() {
        // As `date -u -d @SECONDS +%FT%TZ` has them.
        let known = [
            (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (951_868_799, "2000-02-29T23:59:59Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"), (-62_167_219_200, "0000-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ]
        for (seconds, expected) in known { #expect(text(seconds) == expected) }
        #expect(text(253_402_300_800) == "@253402300800" && text(.min) == "@\(Int.min)" && text(.max) == "@\(Int.max)")
    }

    @Test func `is compared and measured`() {
        let (early, late) = (WallInstant(secondsSince1970: 10), WallInstant(secondsSince1970: 70))
        #expect(early < late && early == WallInstant(secondsSince1970: 10))
        #expect(early.duration(to: late) == .seconds(60) && late.duration(to: early) == .seconds(-60))
        #expect(WallInstant(secondsSince1970: .min).duration(to: late) == .seconds(Int.max))
        #expect(WallInstant.now > late)
    }
}
