import RingbackBase
import Testing

@Suite struct `Timestamps` {
    static let instants: [(Int, String)] = [
        (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (951_868_800, "2000-03-01T00:00:00Z"),
        (1_795_238_201, "2026-11-21T05:16:41Z"), (-1, "1969-12-31T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"), (4_107_542_399, "2100-02-28T23:59:59Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"), (-62_167_219_200, "0000-01-01T00:00:00Z"),
    ]

    @Test(arguments: instants) func `are written in UTC and read back`(seconds: Int, text: String) {
        #expect(Timestamp.text(of: seconds) == text)
        #expect(Timestamp.seconds(of: text) == seconds)
    }

    @Test func `agree with themselves on every day of four centuries`() {
        for day in stride(from: -146_097, through: 146_097, by: 1) {
            let seconds = day * 86_400 + 43_200
            guard Timestamp.seconds(of: Timestamp.text(of: seconds)) != seconds else { continue }
            Issue.record("\(day)")
            return
        }
    }

    @Test func `beyond four digits of a year are cut`() {
        #expect(Timestamp.text(of: .max) == "9999-12-31T23:59:59Z")
        #expect(Timestamp.text(of: .min) == "0000-01-01T00:00:00Z")
    }

    @Test func `may have a fraction, an offset and small letters`() {
        for text in [
            "2026-11-21T06:16:41+01:00", "2026-11-20T23:46:41-05:30", "2026-11-21t05:16:41z",
            "2026-11-21T05:16:41.999999999Z", "2026-11-21T06:16:41.5+01:00",
        ] { #expect(Timestamp.seconds(of: text) == 1_795_238_201, "\(text)") }
    }

    @Test(arguments: [
        "", "2026-11-21", "2026-11-21T05:16:41", "2026-11-21 05:16:41Z", "2026-13-21T05:16:41Z", "2026-02-29T05:16:41Z",
        "2026-11-00T05:16:41Z", "2026-11-21T24:16:41Z", "2026-11-21T05:60:41Z", "2026-11-21T05:16:61Z",
        "2026-11-21T05:16:41.Z", "2026-11-21T05:16:41+0100", "2026-11-21T05:16:41+24:00", "2026-11-21T05:16:41Zx",
        "+026-11-21T05:16:41Z", "2026-11-21T05:16:41.5", "٢٠٢٦-11-21T05:16:41Z", "2026-03-02T08:14:5٥Z", "yesterday",
    ]) func `are nothing else`(text: String) {
        #expect(Timestamp.seconds(of: text) == nil)
    }
}
