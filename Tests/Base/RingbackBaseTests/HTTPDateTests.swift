import RingbackBase
import Testing

@Suite struct `The date of an answer` {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Sat, 21 Nov 2026 11:33:49 GMT", 1_795_260_829),
        ("Fri, 31 Dec 2100 00:00:00 GMT", 4_133_894_400),
    ])
    func `is read as servers write it`(text: String, seconds: Int) {
        #expect(HTTPDate.seconds(of: text) == seconds)
        #expect(HTTPDate.text(of: seconds) == text)
    }

    @Test(arguments: [
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Saturday, 21-Nov-26 11:33:49 GMT", 1_795_260_829), ("Sat Nov 21 11:33:49 2026", 1_795_260_829),
        ("Thursday, 01-Jan-70 00:00:00 GMT", 0), ("Sun, 6 Nov 1994 08:49:37 GMT", 784_111_777),
    ])
    func `an HTTP date in an obsolete format is read`(text: String, seconds: Int) {
        #expect(HTTPDate.seconds(of: text) == seconds)
    }

    @Test func `is written as it is read, on every day of four centuries`() {
        for day in 0..<146_097 {
            let seconds = day * 86_400 + day % 86_400
            guard HTTPDate.seconds(of: HTTPDate.text(of: seconds)) != seconds else { continue }
            Issue.record("\(seconds) \(HTTPDate.text(of: seconds))")
            return
        }
    }

    @Test(arguments: [
        "", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37", "Sunday, 06-11-94 08:49:37 GMT",
        "Sun Nov 31 08:49:37 1994", "Sun 6 Nov 08:49:37 1994", "Sunday Nov 6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT", "784111777", "Sun, 06 Nov 1969 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
        "Fri, 31 Feb 2025 08:49:37 GMT", "Wed, 29 Feb 2023 08:49:37 GMT", "Fri, 31 Apr 2026 08:49:37 GMT",
        "Sun, 32 Jan 2026 08:49:37 GMT",
    ])
    func `is nothing else`(text: String) {
        #expect(HTTPDate.seconds(of: text) == nil)
    }
}
