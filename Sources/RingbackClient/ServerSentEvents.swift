/// Takes a stream of server-sent events apart (WHATWG HTML section 9.2) as its bytes come.
package struct ServerSentEvents {
    /// One event.
    package struct Event: Sendable, Equatable {
        package var id: String?
        package var name = "message"
        package var data = ""

        package init(id: String? = nil, name: String = "message", data: String = "") {
            self.id = id
            self.name = name
            self.data = data
        }
    }

    /// Bytes of one line, or of one event's data: a server that sends more is broken.
    static let limit = 1 << 20

    private var line: [UInt8] = []
    private var skipsNewline = false
    private var id: String?
    private var name = ""
    private var data: [String] = []
    private var size = 0

    package init() {}

    /// Takes bytes and gives the events that they completed.
    ///
    /// - Throws: `bad_answer` for a line or an event without end.
    package mutating func append(_ bytes: [UInt8]) throws(RingbackError) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            if skipsNewline {
                skipsNewline = false
                if byte == 10 { continue }
            }
            guard byte == 10 || byte == 13 else {
                line.append(byte)
                guard line.count <= ServerSentEvents.limit else {
                    throw RingbackError(.badAnswer, "The server sent an event without end.")
                }
                continue
            }
            skipsNewline = byte == 13
            let text = String(decoding: line, as: UTF8.self)
            line.removeAll(keepingCapacity: true)
            if let event = try take(text) { events.append(event) }
        }
        return events
    }

    private mutating func take(_ text: String) throws(RingbackError) -> Event? {
        guard !text.isEmpty else {
            defer {
                name = ""
                data = []
                size = 0
            }
            guard !data.isEmpty else { return nil }
            return Event(id: id, name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"))
        }
        guard !text.hasPrefix(":") else { return nil }
        let colon = text.firstIndex(of: ":")
        var value = colon.map { text[text.index(after: $0)...] } ?? ""
        if value.hasPrefix(" ") { value = value.dropFirst() }
        switch text[..<(colon ?? text.endIndex)] {
        // The id goes back to the server as a header field, and stays for events without one.
        case "id": if !value.contains("\0") { id = String(value) }
        case "event": name = String(value)
        case "data":
            size += value.utf8.count
            guard size <= ServerSentEvents.limit else {
                throw RingbackError(.badAnswer, "The server sent an event without end.")
            }
            data.append(String(value))
        default: break
        }
        return nil
    }
}
