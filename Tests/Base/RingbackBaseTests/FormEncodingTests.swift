import RingbackBase
import Testing

private typealias Pair = FormEncoding.Pair

@Suite struct `Form encoding` {
    @Test(
        arguments: [
            ("", []),
            ("a=1&b=2", [Pair("a", "1"), Pair("b", "2")]),
            ("a=1&a=2&a=1", [Pair("a", "1"), Pair("a", "2"), Pair("a", "1")]),
            ("a", [Pair("a", "")]),
            ("a=", [Pair("a", "")]),
            ("=a", [Pair("", "a")]),
            ("a==b=", [Pair("a", "=b=")]),
            ("&&a=1&&", [Pair("a", "1")]),
            ("a+b=c+d", [Pair("a b", "c d")]),
            ("a+b%2Bc", [Pair("a b+c", "")]),
            ("a%20b=%C3%A9%e2%82%ac", [Pair("a b", "é€")]),
            ("a=1;b=2", [Pair("a", "1;b=2")]),
            ("state[]=1&state[a]=2", [Pair("state[]", "1"), Pair("state[a]", "2")]),
            ("st%61te=x", [Pair("state", "x")]),
            ("a=%26%3D%25", [Pair("a", "&=%")]),
            ("a=1?b/c:d@e!$'()*,", [Pair("a", "1?b/c:d@e!$'()*,")]),
            ("a=%0A%7F", [Pair("a", "\n\u{7F}")]),
        ] as [(String, [FormEncoding.Pair])]) func `is read as it was written`(text: String, pairs: [FormEncoding.Pair])
        throws
    {
        #expect(try FormEncoding.parse(text) == pairs)
    }

    /// What one parser repairs, another takes literally.
    @Test(arguments: [
        "a=%", "a=%z", "a=%1", "a=%zz", "a=%1z", "a=%%30", "%", "a=1&b=%2", "state=%zz&state=ok", "a=% 1", "a=%+1",
        "a=%-1",
        "a=%00", "%00=a", "a=x%00y",
        "a=%C0%AF", "a=%ED%A0%80", "a=%FF", "a=%C3", "a=%F4%90%80%80",
        "a=b c", "a=\tb", "a=b\n", "a=\u{0}", "a=é", "a=\u{7F}",
    ]) func `is refused where it is not one`(text: String) {
        #expect(throws: FormEncoding.Failure.malformed) { try FormEncoding.parse(text) }
    }

    @Test func `is read from bytes that are no text`() {
        #expect(throws: FormEncoding.Failure.malformed) { try FormEncoding.parse([0x61, 0x3D, 0xFF] as [UInt8]) }
    }

    @Test(arguments: [
        ("code=c1&hd=100%", "100%"), ("code=c1&hd=%zz+%2Fx", "%zz /x"), ("hd=refus%E9&code=c1", "refusé"),
        ("code=c1&hd=a%00", "a%00"), ("code=c1&hd=%C3%A9", "é"), ("code=c1&hd=%4", "%4"), ("code=c1&hd=é", "é"),
    ])
    func `a parameter that is not needed may be malformed`(text: String, value: String) throws {
        let pairs = try FormEncoding.parse(Array(text.utf8), needed: ["code", "state"])
        #expect(pairs.first { $0.name == "hd" }?.value == value)
        #expect(pairs.first { $0.name == "code" }?.value == "c1")
        #expect(throws: FormEncoding.Failure.malformed) {
            try FormEncoding.parse(Array((text + "&state=%").utf8), needed: ["code", "state"])
        }
    }

    @Test func `a malformed name is not the name of another parameter`() throws {
        let names = try FormEncoding.parse(Array("c%6Fde=1&co%de=2&code%=3&code%00=4& code=5".utf8), needed: []).map(
            \.name)
        #expect(names.filter { $0 == "code" }.count == 1 && names.count == 5)
    }

    @Test func `characters that browsers do not escape in a query are escaped`() {
        let escaped = FormEncoding.escapingQuery(of: "http://127.0.0.1/a|b?x={a|b}^`\\\"<é>#y=ж")
        #expect(escaped == "http://127.0.0.1/a|b?x=%7Ba%7Cb%7D%5E%60%5C%22%3C%C3%A9%3E#y=%D0%B6")
        #expect(FormEncoding.escapingQuery(of: "app://x/é") == "app://x/é")
    }

    @Test func `has so many pairs and no more`() throws {
        let hundred = Array(repeating: "a=1", count: 100).joined(separator: "&")
        #expect(try FormEncoding.parse(hundred).count == 100)
        #expect(throws: FormEncoding.Failure.tooMany) { try FormEncoding.parse(hundred + "&b=2") }
        #expect(throws: FormEncoding.Failure.tooMany) { try FormEncoding.parse("a&b", maxPairs: 1) }
        let thousands = Array(repeating: "a", count: 10_000).joined(separator: "&")
        #expect(throws: FormEncoding.Failure.tooMany) { try FormEncoding.parse(thousands) }
    }

    @Test func `escapes everything but the unreserved characters`() {
        #expect(FormEncoding.escape("AZaz09-._~") == "AZaz09-._~")
        #expect(
            FormEncoding.escape(" +&=%/?#[]@!$'()*,;:")
                == "%20%2B%26%3D%25%2F%3F%23%5B%5D%40%21%24%27%28%29%2A%2C%3B%3A")
        #expect(FormEncoding.escape("é\n\u{0}") == "%C3%A9%0A%00")
        #expect(FormEncoding.escape("a b", spaceAsPlus: true) == "a+b")
        #expect(FormEncoding.escape("a+b", spaceAsPlus: true) == "a%2Bb")
    }

    @Test func `joins pairs in order`() {
        #expect(FormEncoding.encode([("a b", "c d"), ("a", ""), ("e", "&")]) == "a%20b=c%20d&a=&e=%26")
        #expect(FormEncoding.encode([("a b", "c d")], spaceAsPlus: true) == "a+b=c+d")
        #expect(FormEncoding.encode([]).isEmpty)
    }

    @Test(arguments: [true, false]) func `reads back what it wrote`(spaceAsPlus: Bool) throws {
        let ascii = String(String.UnicodeScalarView((1...126).compactMap { Unicode.Scalar($0) }))
        for text in [ascii, "é€😹", "+ +", "%2B", "a=b&c"] {
            let written = FormEncoding.encode([(text, text), ("x", text)], spaceAsPlus: spaceAsPlus)
            #expect(try FormEncoding.parse(written) == [Pair(text, text), Pair("x", text)])
        }
    }
}
