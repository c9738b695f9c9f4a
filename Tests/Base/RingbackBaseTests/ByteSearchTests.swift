import RingbackBase
import Testing

@Suite struct `A search in bytes` {
    /// Every pair of bytes, at every place of a word.
    @Test func `finds the first one, whatever stands before and after it`() {
        let seconds: [UInt8] = [
            0, 9, 10, 11, 12, 13, 14, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F, 0x80, 0x9F, 0xFF,
        ]
        for first in UInt8.min...UInt8.max {
            for second in seconds {
                for place in 0..<9 {
                    var bytes = [UInt8](repeating: 0x61, count: 19)
                    bytes[place] = first
                    bytes[place + 1] = second
                    for start in [0, place, place + 1] {
                        let lineEnd = bytes[start...].firstIndex { $0 == 10 || $0 == 13 } ?? 19
                        #expect(ByteSearch.lineEnd(in: bytes.span, from: start) == lineEnd)
                        let textEnd = bytes[start...].firstIndex { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C } ?? 19
                        #expect(ByteSearch.textEnd(in: bytes.span, from: start, to: 19) == textEnd)
                    }
                    #expect(ByteSearch.isASCII(bytes.span) == bytes.allSatisfy { $0 < 0x80 })
                }
            }
        }
    }

    @Test func `ends where it is told`() {
        let bytes = Array("aaaaaaaaaaaa\"".utf8)
        #expect(ByteSearch.textEnd(in: bytes.span, from: 0, to: 5) == 5)
        #expect(ByteSearch.textEnd(in: bytes.span, from: 0, to: 12) == 12)
        #expect(ByteSearch.textEnd(in: bytes.span, from: 13, to: 13) == 13)
        #expect(ByteSearch.lineEnd(in: [UInt8]().span, from: 0) == 0)
    }
}
