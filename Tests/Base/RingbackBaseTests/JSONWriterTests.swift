import RingbackBase
import Testing

@Suite struct `The JSON writer` {
    @Test func `writes compact JSON in the order of the members`() {
        let value: JSON = ["b": [1, nil, true, false], "a": ["x": "y"], "n": .double(1.5), "e": [:], "l": []]
        #expect(value.text == #"{"b":[1,null,true,false],"a":{"x":"y"},"n":1.5,"e":{},"l":[]}"#)
    }

    @Test(arguments: [
        ("plain", #""plain""#), ("a\"b\\c/d", #""a\"b\\c/d""#), ("\n\r\t", #""\n\r\t""#),
        ("\u{0}\u{1F}", #""\u0000\u001f""#),
        ("\u{8}\u{C}\u{7F}", #""\u0008\u000c\u007f""#), ("é€😹", "\"é€😹\""), ("\u{2028}", "\"\u{2028}\""), ("", "\"\""),
    ]) func `escapes what must be, and nothing else`(text: String, written: String) {
        #expect(JSON.string(text).text == written)
    }

    @Test(
        arguments: [
            .integer(.min), .integer(.max), .double(0.1), .double(-1e300), .double(.leastNonzeroMagnitude),
            .double(1e16), .double(123_456_789.125),
            .string("\u{0}\u{7F}\"\\/\u{10FFFF}"), ["a": ["b": [[], [:], nil]]],
        ] as [JSON]) func `writes what the parser reads back`(value: JSON) throws
    {
        #expect(try JSON(parsing: value.serialized()) == value)
    }

    @Test(arguments: [
        ("\u{9B}31m", #"\u009b31m"#), ("a\u{85}b", #"a\u0085b"#), ("\u{202E}txt.exe", #"\u202etxt.exe"#),
        ("\u{2028}\u{2029}", #"\u2028\u2029"#), ("\u{200B}\u{FEFF}\u{FE0F}", #"\u200b\ufeff\ufe0f"#),
        ("\u{E0041}", #"\udb40\udc41"#), ("\u{A0}", #"\u00a0"#), ("\u{10FFFF}", #"\udbff\udfff"#),
        ("Zürich, Привет, 日本 \u{1F600}", "Zürich, Привет, 日本 \u{1F600}"), ("\u{1B}\u{7F}", #"\u001b\u007f"#),
    ]) func `SK-27: for a terminal, escapes what moves, turns, hides or ends a line as well`(
        text: String, written: String
    ) throws {
        let value = JSON.object(JSONObject([.init(text, .array([.string(text)]))]))
        #expect(value.visibleText == "{\"\(written)\":[\"\(written)\"]}")
        #expect(try JSON(parsing: value.visibleText.utf8) == value)
    }

    @Test func `writes no number that is none`() {
        #expect(JSON.double(.infinity).text == "null")
        #expect(JSON.double(.nan).text == "null")
    }

    @Test func `adds to what is there`() {
        var output = Array("x=".utf8)
        JSON.integer(1).write(to: &output)
        JSON.writeString("s", to: &output)
        #expect(output == Array("x=1\"s\"".utf8))
    }
}
