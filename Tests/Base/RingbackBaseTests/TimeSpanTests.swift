import RingbackBase
import Testing

@Suite struct `A span of time` {
    @Test(arguments: [("90s", 90), ("15m", 900), ("8h", 28_800), ("7d", 604_800), ("2w", 1_209_600), ("0s", 0)])
    func `is read as people type it`(text: String, seconds: Int) {
        #expect(TimeSpan.seconds(of: text) == seconds)
    }

    @Test(arguments: ["", "s", "8", "8 h", "-1s", "+1s", "1.5h", "8H", "٣s", "9223372036854775807w"])
    func `is nothing else`(text: String) { #expect(TimeSpan.seconds(of: text) == nil) }
}
