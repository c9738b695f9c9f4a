import Testing

@testable import RingbackClient

@Suite struct `Server-sent events` {
    private let stream =
        ": hello\n\nid: 7\nevent: signed_in\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\nevent: empty\n\nid\ndata: y\r\r"

    private let expected: [ServerSentEvents.Event] = [
        .init(id: "7", name: "signed_in", data: "{\"a\":\n1}"), .init(id: "7", data: "x"), .init(id: "", data: "y"),
    ]

    @Test func `events are the same however the bytes are cut`() throws {
        for size in [1, 2, 3, 7, 1_000] {
            var parser = ServerSentEvents()
            var events: [ServerSentEvents.Event] = []
            var rest = Array(stream.utf8)[...]
            while !rest.isEmpty {
                events += try parser.append(Array(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
            #expect(events == expected, "pieces of \(size)")
        }
    }

    /// A space, a colon or a line break with an accent on it is another character, but the same byte.
    @Test func `a stream is bytes, not characters`() throws {
        let accent = "\u{301}"
        let texts = [
            "data: \(accent)x\n\n": ServerSentEvents.Event(data: "\(accent)x"),
            "data:\(accent)x\n\n": ServerSentEvents.Event(data: "\(accent)x"),
            "data:x\n\(accent)\n\n": ServerSentEvents.Event(data: "x"),
            "data:x\n:\(accent)\n\n": ServerSentEvents.Event(data: "x"),
            "event:\(accent)\ndata\n\n": ServerSentEvents.Event(name: accent, data: ""),
            "event\(accent):a\ndata:x\n\n": ServerSentEvents.Event(data: "x"),
            "id:\(accent)\ndata:x\n\n": ServerSentEvents.Event(id: accent, data: "x"),
            "data:x\r\n\(accent)\r\n\r\n": ServerSentEvents.Event(data: "x"),
        ]
        for (text, event) in texts {
            for size in [1, 1_000] {
                var parser = ServerSentEvents()
                var events: [ServerSentEvents.Event] = []
                for start in stride(from: 0, to: text.utf8.count, by: size) {
                    events += try parser.append(Array(text.utf8.dropFirst(start).prefix(size)))
                }
                #expect(events == [event], "\(text.debugDescription)")
            }
        }
    }

    @Test func `data of one line can end with a line feed`() throws {
        let text = "data: {}\n\ndata: {\ndata: }\r\n\r\ndata:\n\n"
        for size in [1, 2, 1_000] {
            var parser = ServerSentEvents(endsWithLineFeed: true)
            var events: [ServerSentEvents.Event] = []
            for start in stride(from: 0, to: text.utf8.count, by: size) {
                events += try parser.append(Array(text.utf8)[start...].prefix(size))
            }
            #expect(events.map(\.data) == ["{}\n", "{\n}", ""] && events.map(\.isOneLine) == [true, false, true])
        }
    }

    @Test func `an event that has not ended is not an event`() throws {
        var parser = ServerSentEvents()
        #expect(try parser.append(Array("data: x\n".utf8)).isEmpty)
    }

    @Test func `a line without end is refused`() {
        let bytes = [UInt8](repeating: 0x61, count: (1 << 20) + 1)
        let kind = kind { () throws(RingbackError) in
            var parser = ServerSentEvents()
            return try parser.append(bytes)
        }
        #expect(kind == .badResponse)
    }
}
