import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Retry-After` {
    @Test(
        arguments: [
            ("0", 0), ("30", 30), (" 30\t", 30), ("86400", 86_400), ("86401", 86_400),
            ("0000000000000000000000030", 30),
            ("99999999999999999999999999999999", 86_400), ("", nil), (" ", nil),
            ("Wed, 21 Oct 2026 07:30:05 GMT", 125), ("Wednesday, 21-Oct-26 07:30:05 GMT", 125),
            ("Wed Oct 21 07:30:05 2026", 125), ("Wed, 21 Oct 2026 07:00:00 GMT", 0),
            ("Wed, 21 Oct 2099 07:28:00 GMT", 86_400), ("Wed, 21 Oct 2026 07:28 GMT", nil),
            ("-1", nil), ("1.5", nil), ("+3", nil), ("3 s", nil), ("٣", nil),
        ] as [(String, Int?)])
    func `seconds within a day, or nothing`(text: String, seconds: Int?) {
        let fields = HTTPFields([("retry-after", text), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")])
        #expect(RetryAfter.seconds(in: fields) == seconds)
    }

    @Test(arguments: [("Wed, 21 Oct 2099 07:28:00 GMT", 86_400), ("Wed, 21 Oct 1998 07:28:00 GMT", 0)])
    func `a Retry-After date in a response without Date is compared with the clock`(text: String, seconds: Int) {
        #expect(RetryAfter.seconds(in: HTTPFields([("retry-after", text)])) == seconds)
    }

    @Test func `no field, no time`() { #expect(RetryAfter.seconds(in: HTTPFields()) == nil) }
}
