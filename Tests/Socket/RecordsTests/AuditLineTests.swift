import RingbackBase
import Testing

@testable import Records

@Suite struct `A line of the audit log` {
    static let texts = [
        "", "plain", "Zürich, Привет, 日本", "a\nb\r\t\u{0}\u{7F}", "\u{202E}txt.exe", "\u{2066}x\u{2069}",
        "\u{200B}\u{FEFF}",
        "\u{2028}\u{2029}\u{85}\u{9B}31m", "\u{E0041}\u{1F600}", "\"\\/", "\u{FE0F}\u{115F}\u{A0}",
    ]

    @Test(arguments: texts) func `SK-28: is one line, shows what it holds, and gives it back`(text: String) throws {
        let entry = JSONObject([.init("event", "x"), .init("executable", .string(text))])
        let bytes = AuditLine.bytes(of: entry)
        #expect(bytes.last == 10)
        #expect(bytes.count { $0 == 10 } == 1)
        #expect(AuditLine.entry(of: bytes.dropLast()) == entry)
        for scalar in String(decoding: bytes.dropLast(), as: UTF8.self).unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse: Issue.record("\(scalar.value)")
            default: #expect(!scalar.properties.isDefaultIgnorableCodePoint)
            }
        }
    }

    @Test func `keeps letters as they are`() {
        let bytes = AuditLine.bytes(of: JSONObject([.init("a", "Привет 日本")]))
        #expect(String(decoding: bytes, as: UTF8.self) == "{\"a\":\"Привет 日本\"}\n")
    }

    @Test(arguments: ["", "{", "[]", "null", "{}x", "{\"a\":1,\"a\":2}", "x{}", " {}", "{\"a\":\"\u{1}\"}"])
    func `is nothing else`(text: String) {
        #expect(AuditLine.entry(of: Array(text.utf8)[...]) == nil)
    }
}
