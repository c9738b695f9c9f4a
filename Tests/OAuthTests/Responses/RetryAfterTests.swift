import HTTPMessages
import Testing

@testable import OAuth

@Suite struct `Retry-After` {
    @Test(
        arguments: [
            ("0", 0), ("30", 30), (" 30\t", 30), ("86400", 86_400), ("86401", 86_400),
            ("0000000000000000000000030", 30),
            ("99999999999999999999999999999999", 86_400), ("Wed, 21 Oct 2026 07:28:00 GMT", nil), ("", nil), (" ", nil),
            ("-1", nil), ("1.5", nil), ("+3", nil), ("3 s", nil), ("٣", nil),
        ] as [(String, Int?)])
    func `seconds within a day, or nothing`(text: String, seconds: Int?) {
        #expect(RetryAfter.seconds(in: HTTPFields([("retry-after", text)])) == seconds)
    }

    @Test func `no field, no time`() { #expect(RetryAfter.seconds(in: HTTPFields()) == nil) }
}
