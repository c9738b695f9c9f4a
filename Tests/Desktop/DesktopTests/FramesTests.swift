import Testing

@testable import Desktop

@Suite struct `The frames of a message` {
    @Test func `come out as they went in, however they are cut`() throws {
        var sent: [UInt8] = []
        for text in ["one", "", "three"] { appendFrame(Array(text.utf8), to: &sent) }
        for size in 1...sent.count {
            var reader = MessageReader(limit: 100)
            var received: [String] = []
            for start in stride(from: 0, to: sent.count, by: size) {
                reader.append(sent[start..<min(start + size, sent.count)])
                while let frame = try reader.nextFrame() { received.append(String(decoding: frame, as: UTF8.self)) }
            }
            #expect(received == ["one", "", "three"])
        }
    }

    @Test func `longer than the limit are refused before they arrive`() throws {
        var reader = MessageReader(limit: 5)
        reader.append([0, 0, 0, 6])
        #expect(throws: MessageReader.Broken.self) { try reader.nextFrame() }
        var huge = MessageReader(limit: 5)
        huge.append([0xFF, 0xFF, 0xFF, 0xFF])
        #expect(throws: MessageReader.Broken.self) { try huge.nextFrame() }
    }
}
