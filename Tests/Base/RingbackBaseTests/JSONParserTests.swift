import Testing

@testable import RingbackBase

/// The names are those of JSONTestSuite (Seriot, "Parsing JSON is a minefield") where it has the case.
private struct Text: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]

    init(_ name: String, _ text: String) {
        self.init(name, Array(text.utf8))
    }

    init(_ name: String, _ bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }

    var testDescription: String { name }
}

private let accepted: [(Text, JSON)] = [
    (Text("structure_lonely_null", "null"), nil),
    (Text("structure_lonely_true", " \t\r\ntrue\n"), true),
    (Text("structure_lonely_false", "false"), false),
    (Text("structure_lonely_string", "\"\""), ""),
    (Text("structure_lonely_int", "42"), 42),
    (Text("array_empty", "[]"), []),
    (Text("array_with_spaces", "[ 1 , \"a\" ,null ]"), [1, "a", nil]),
    (Text("array_nested", "[[],[[]]]"), [[], [[]]]),
    (Text("object_empty", "{ }"), [:]),
    (Text("object_empty_key", "{\"\":0}"), ["": 0]),
    (Text("object_in_order", "{\"b\":1,\"a\":{\"c\":[true]}}"), ["b": 1, "a": ["c": [true]]]),
    (Text("object_names_differ_in_case", "{\"a\":1,\"A\":2}"), ["a": 1, "A": 2]),
    (Text("number_zero", "0"), 0),
    (Text("number_minus_zero", "-0"), 0),
    (Text("number_int_max", "9223372036854775807"), .integer(.max)),
    (Text("number_int_min", "-9223372036854775808"), .integer(.min)),
    (Text("number_beyond_int", "9223372036854775808"), .double(9_223_372_036_854_775_808)),
    (Text("number_beyond_int_negative", "-9223372036854775809"), .double(-9_223_372_036_854_775_808)),
    (Text("number_with_fraction", "3600.0"), .double(3_600)),
    (Text("number_0e1", "0e1"), .double(0)),
    (Text("number_real_capital_e_neg_exp", "1E-2"), .double(0.01)),
    (Text("number_real_pos_exponent", "1e+2"), .double(100)),
    (Text("number_huge_exp_reads_as_infinity", "1e999"), .double(.infinity)),
    (Text("number_tiny_exp_reads_as_zero", "1e-999"), .double(0)),
    (Text("string_allowed_escapes", #""\"\\\/\b\f\n\r\t""#), "\"\\/\u{8}\u{C}\n\r\t"),
    (Text("string_unicode_escape", #""\u0041\u00e9\u20AC""#), "Aé€"),
    (Text("string_surrogate_pair", #""\uD83D\ude39""#), "😹"),
    (Text("string_escaped_nul", #""a\u0000b""#), "a\u{0}b"),
    (Text("string_utf8", "\"é€😹\""), "é€😹"),
    (Text("string_del", "\"\u{7F}\""), "\u{7F}"),
    (Text("string_noncharacter", #""\uFFFF""#), "\u{FFFF}"),
]

private let refused: [(Text, JSONError.Reason)] = [
    (Text("structure_no_data", ""), .empty),
    (Text("structure_only_space", " \n"), .empty),
    (Text("structure_bom", [0xEF, 0xBB, 0xBF, 0x7B, 0x7D]), .unexpectedCharacter),
    (Text("structure_utf16", [0x22, 0x00, 0x61, 0x00, 0x22, 0x00]), .controlCharacter),
    (Text("structure_trailing_text", "{} x"), .trailingText),
    (Text("structure_two_values", "1 2"), .trailingText),
    (Text("structure_double_close", "[]]"), .trailingText),
    (Text("structure_capital_word", "True"), .unexpectedCharacter),
    (Text("structure_word_cut", "nul"), .unexpectedEnd),
    (Text("structure_word_with_tail", "nulls"), .trailingText),
    (Text("structure_form_feed", "[\u{C}1]"), .unexpectedCharacter),
    (Text("structure_no_break_space", "[\u{A0}1]"), .unexpectedCharacter),
    (Text("structure_comment", "/* */ {}"), .unexpectedCharacter),
    (Text("structure_single_quotes", "{'a':1}"), .unexpectedCharacter),
    (Text("structure_nul_behind", "1\u{0}"), .trailingText),
    (Text("array_open", "["), .unexpectedEnd),
    (Text("array_trailing_comma", "[1,]"), .unexpectedCharacter),
    (Text("array_leading_comma", "[,1]"), .unexpectedCharacter),
    (Text("array_without_comma", "[1 2]"), .unexpectedCharacter),
    (Text("array_closed_by_brace", "[1}"), .unexpectedCharacter),
    (Text("object_open", "{"), .unexpectedEnd),
    (Text("object_name_only", "{\"a\"}"), .unexpectedCharacter),
    (Text("object_name_cut", "{\"a\":"), .unexpectedEnd),
    (Text("object_bare_name", "{a:1}"), .unexpectedCharacter),
    (Text("object_number_name", "{1:1}"), .unexpectedCharacter),
    (Text("object_trailing_comma", "{\"a\":1,}"), .unexpectedCharacter),
    (Text("object_duplicate", "{\"a\":1,\"b\":2,\"a\":1}"), .duplicateMember),
    (Text("object_duplicate_escaped", #"{"state":1,"st\u0061te":2}"#), .duplicateMember),
    (Text("object_duplicate_nested", "{\"x\":{\"a\":1,\"a\":2}}"), .duplicateMember),
    (Text("number_leading_zero", "01"), .invalidNumber),
    (Text("number_minus_leading_zero", "-01"), .invalidNumber),
    (Text("number_plus", "+1"), .unexpectedCharacter),
    (Text("number_minus", "-"), .invalidNumber),
    (Text("number_point_first", ".5"), .unexpectedCharacter),
    (Text("number_point_last", "1."), .invalidNumber),
    (Text("number_exponent_empty", "1e"), .invalidNumber),
    (Text("number_exponent_sign_only", "1e+"), .invalidNumber),
    (Text("number_hex", "0x1"), .trailingText),
    (Text("number_nan", "NaN"), .unexpectedCharacter),
    (Text("number_infinity", "-Infinity"), .invalidNumber),
    (Text("number_full_width_digit", "１"), .unexpectedCharacter),
    (Text("string_open", "\"abc"), .unexpectedEnd),
    (Text("string_escape_cut", "\"\\"), .unexpectedEnd),
    (Text("string_unknown_escape", #""\x41""#), .invalidEscape),
    (Text("string_unicode_cut", #""\u00A"#), .unexpectedEnd),
    (Text("string_unicode_not_hex", #""\u00G0""#), .invalidEscape),
    (Text("string_unicode_full_width_hex", "\"\\u００４１\""), .invalidEscape),
    (Text("string_lone_high", #""\uD800""#), .loneSurrogate),
    (Text("string_lone_low", #""\uDC00""#), .loneSurrogate),
    (Text("string_high_and_high", #""\uD800\uD800""#), .loneSurrogate),
    (Text("string_high_and_letter", #""\uD800n""#), .loneSurrogate),
    (Text("string_high_and_newline", #""\uD800\n""#), .loneSurrogate),
    (Text("string_raw_line_feed", "\"a\nb\""), .controlCharacter),
    (Text("string_raw_nul", "\"a\u{0}b\""), .controlCharacter),
    (Text("string_raw_tab", "\"\t\""), .controlCharacter),
    (Text("string_overlong_slash", [0x22, 0xC0, 0xAF, 0x22]), .invalidUTF8),
    (Text("string_encoded_surrogate", [0x22, 0xED, 0xA0, 0x80, 0x22]), .invalidUTF8),
    (Text("string_beyond_unicode", [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22]), .invalidUTF8),
    (Text("string_cut_sequence", [0x22, 0xE2, 0x82, 0x22]), .invalidUTF8),
    (Text("string_invalid_behind_escape", [0x22, 0x5C, 0x6E, 0xFF, 0x22]), .invalidUTF8),
    (Text("name_invalid", [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D]), .invalidUTF8),
]

@Suite struct `The JSON parser` {
    @Test(arguments: accepted) private func `reads what RFC 8259 writes`(text: Text, value: JSON) throws {
        #expect(try JSON(parsing: text.bytes) == value)
    }

    @Test(arguments: refused)
    private func `PR-06, PR-07: refuses everything else`(text: Text, reason: JSONError.Reason) {
        #expect { try JSON(parsing: text.bytes) } throws: { ($0 as? JSONError)?.reason == reason }
    }

    @Test func `PR-07: takes two names that Swift cannot tell apart for one`() {
        // Composed and decomposed; the Kelvin sign and K: a member that shadows another would be worse than a refusal.
        for (one, other) in [("\u{E9}", "e\u{301}"), ("K", "\u{212A}")] {
            let bytes = Array("{\"\(one)\":1,\"\(other)\":2}".utf8)
            #expect { try JSON(parsing: bytes) } throws: { ($0 as? JSONError)?.reason == .duplicateMember }
        }
    }

    @Test func `says where the mistake is`() {
        #expect(throws: JSONError(reason: .duplicateMember, offset: 7)) {
            try JSON(parsing: Array(#"{"a":1,"a":2}"#.utf8))
        }
        #expect(throws: JSONError(reason: .trailingText, offset: 3)) { try JSON(parsing: Array("{} x".utf8)) }
        #expect("\(JSONError(reason: .tooDeep, offset: 4))" == "nested too deeply at byte 4")
    }

    @Test func `PR-08: goes down to its bound and no deeper`() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        #expect(throws: Never.self) { try JSON(parsing: nested(32)) }
        #expect(throws: JSONError(reason: .tooDeep, offset: 32)) { try JSON(parsing: nested(33)) }
        // What only opens must not use up the stack either.
        let opened = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)
        #expect { try JSON(parsing: opened) } throws: { ($0 as? JSONError)?.reason == .tooDeep }
        let objects = Array(String(repeating: "{\"a\":", count: 100_000).utf8)
        #expect { try JSON(parsing: objects) } throws: { ($0 as? JSONError)?.reason == .tooDeep }
    }

    @Test func `PR-08: counts values, and stops`() {
        let list = Array(("[" + Array(repeating: "0", count: 10).joined(separator: ",") + "]").utf8)
        #expect(throws: Never.self) { try JSON(parsing: list, maxValues: 11) }
        #expect { try JSON(parsing: list, maxValues: 10) } throws: { ($0 as? JSONError)?.reason == .tooManyMembers }
    }

    @Test func `does not convert numbers of any length`() {
        let long = [UInt8](repeating: UInt8(ascii: "1"), count: 401)
        #expect { try JSON(parsing: long) } throws: { ($0 as? JSONError)?.reason == .invalidNumber }
        #expect(throws: Never.self) { try JSON(parsing: long.dropLast()) }
    }
}
