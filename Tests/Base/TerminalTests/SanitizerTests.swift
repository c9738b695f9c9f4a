import RingbackBase
import Testing

@testable import Terminal

@Suite struct `The sanitizer` {
    @Test func `SK-27: whatever a corpus of 300 hostile texts holds, plain visible text comes out`() {
        let controls = (0..<0x20).map { UInt32($0) } + (0x7F...0x9F).map { $0 }
        let formats: [UInt32] = [
            0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x180E, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029,
            0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2060, 0x2061, 0x2066, 0x2067, 0x2068, 0x2069, 0x206A, 0x206F,
            0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFB, 0xE0001, 0xE0041, 0xE000, 0xF8FF, 0x10FFFF, 0xFDD0,
        ]
        let patterns: [(String) -> String] = [
            { $0 }, { "\($0)[2J" }, { "name\($0)]0;title\u{7}" }, { "a\($0)b\($0)c" },
        ]
        var texts = 0
        for value in controls + formats {
            guard let scalar = Unicode.Scalar(value) else { continue }
            for pattern in patterns {
                let line = Sanitizer.line(pattern(String(Character(scalar))))
                #expect(line.unicodeScalars.allSatisfy { $0.isVisible }, "U+\(String(value, radix: 16))")
                #expect(!line.unicodeScalars.contains(scalar))
                texts += 1
            }
        }
        #expect(texts >= 300)
    }

    @Test(arguments: [
        ("Álvaro Núñez", "Álvaro Núñez"), ("Пользователь 東京", "Пользователь 東京"), ("a\nb", "a?b"),
        ("a\u{1B}[31mb", "a?[31mb"), ("a\u{202E}b", "a?b"), ("a\u{A0}b", "a b"), ("", ""), ("a\u{0}b", "a?b"),
        ("e\u{301}", "e\u{301}"),
    ])
    func `letters of every script stay, what is not plainly visible is shown as a question mark`(
        text: String, expected: String
    ) {
        #expect(Sanitizer.line(text).unicodeScalars.elementsEqual(expected.unicodeScalars))
    }

    @Test func `long text is cut, with a sign that it was`() {
        let whole = String(repeating: "x", count: 200)
        #expect(Sanitizer.line(whole) == whole)
        let cut = Sanitizer.line(whole + "y")
        #expect(cut.unicodeScalars.count == 200)
        #expect(cut.hasSuffix("x…"))
    }

    @Test func `a heap of combining marks counts like letters`() {
        #expect(Sanitizer.line("e" + String(repeating: "\u{301}", count: 5_000)).unicodeScalars.count == 200)
    }
}
