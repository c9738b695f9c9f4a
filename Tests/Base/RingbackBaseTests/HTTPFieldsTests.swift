import RingbackBase
import Testing

@Suite struct `Header fields` {
    private let fields = HTTPFields([("Accept", "a"), ("Set-Cookie", "1"), ("set-cookie", "2"), ("X-Empty", "")])

    @Test func `are found whatever the letter case`() {
        #expect(fields["ACCEPT"] == "a")
        #expect(fields["Set-Cookie"] == "1")
        #expect(fields[all: "SET-COOKIE"] == ["1", "2"])
        #expect(fields["x-empty"]?.isEmpty == true)
        #expect(fields.contains("x-EMPTY"))
        #expect(!fields.contains("X-Empt"))
        #expect(fields["Missing"] == nil)
        #expect(fields[all: "Missing"].isEmpty)
    }

    @Test func `keep their order`() {
        #expect(fields.lines.map(\.name) == ["Accept", "Set-Cookie", "set-cookie", "X-Empty"])
    }

    @Test func `are added beside others, or replace them all`() {
        var fields = fields
        fields.append("accept", "b")
        #expect(fields[all: "Accept"] == ["a", "b"])
        fields.set("SET-COOKIE", "3")
        #expect(fields[all: "Set-Cookie"] == ["3"])
        #expect(fields.lines.last?.name == "SET-COOKIE")
    }

    @Test func `compare as ASCII letters, not as text`() {
        #expect(HTTPFields.isSame("Content-Length", "cONTENT-lENGTH"))
        #expect(!HTTPFields.isSame("Content-Length", "Content_Length"))
        // The Kelvin sign and K are one letter to Swift's own comparison.
        #expect(!HTTPFields.isSame("\u{212A}eep", "Keep"))
        // Bytes that differ in one bit only, as letter cases do.
        #expect(!HTTPFields.isSame("[", "{"))
        #expect(!HTTPFields.isSame("@", "`"))
    }
}
