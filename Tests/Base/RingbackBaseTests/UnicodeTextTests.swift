import RingbackBase
import Testing

@Suite struct `Text in another encoding than UTF-8` {
    private let text = #"{"name":"é😀"}"#

    private func utf16(_ text: String, isBigEndian: Bool) -> [UInt8] {
        text.utf16.flatMap { unit in
            let bytes = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
            return isBigEndian ? bytes : bytes.reversed()
        }
    }

    @Test func `UTF-16 with and without a byte order mark becomes UTF-8, and UTF-8 loses its mark`() {
        let expected = Array(text.utf8)
        #expect(UnicodeText.utf8(expected) == expected)
        #expect(UnicodeText.utf8([0xEF, 0xBB, 0xBF] + expected) == expected)
        #expect(UnicodeText.utf8([0xFE, 0xFF] + utf16(text, isBigEndian: true)) == expected)
        #expect(UnicodeText.utf8([0xFF, 0xFE] + utf16(text, isBigEndian: false)) == expected)
        #expect(UnicodeText.utf8(utf16(text, isBigEndian: true)) == expected)
        #expect(UnicodeText.utf8(utf16(text, isBigEndian: false)) == expected)
        // Cut off in the middle of a letter.
        #expect(UnicodeText.utf8(utf16("{}x", isBigEndian: false).dropLast()) == Array("{}".utf8))
    }

    @Test(
        arguments: [
            [], [0x7B], [0], [0, 0], [0xFF, 0xFE, 0x00, 0xD8], [0xE9, 0x7B], [0x1F, 0x8B, 0], [0xFF, 0xFF],
        ] as [[UInt8]])
    func `bytes that are no UTF-16 stay as they are`(bytes: [UInt8]) {
        #expect(UnicodeText.utf8(bytes) == bytes)
    }
}
