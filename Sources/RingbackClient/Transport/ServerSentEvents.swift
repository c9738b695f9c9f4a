/// Parses a stream of server-sent events (WHATWG HTML section 9.2) as its bytes arrive.
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

    /// The id of the last event that has ended, also of one without data: where a stream that broke is resumed.
    package private(set) var lastID: String?
    /// The milliseconds that the server last asked clients to wait before they connect again.
    package private(set) var retry: Int?

    /// Bytes of one line, or of one event's data: a server that sends more is broken.
    private let limit: Int
    private var line: [UInt8] = []
    private var skipsNewline = false
    private var isFirstLine = true
    private var id: String?
    private var name = ""
    private var data: [String] = []
    private var size = 0

    package init(limit: Int = 1 << 20) { self.limit = limit }

    /// Takes bytes and returns the events that they completed.
    ///
    /// - Throws: `bad_response` for a line or an event without end.
    package mutating func append(_ bytes: [UInt8]) throws(RingbackError) -> [Event] {
        var events: [Event] = []
        let span = bytes.span
        var place = 0
        while place < span.count {
            if skipsNewline {
                skipsNewline = false
                if span[place] == 10 {
                    place += 1
                    continue
                }
            }
            var end = place
            while end < span.count, span[end] != 10, span[end] != 13 { end += 1 }
            line += bytes[place..<end]
            guard line.count <= limit else {
                throw RingbackError(.badResponse, "The server sent an event without end.")
            }
            guard end < span.count else { break }
            place = end + 1
            skipsNewline = span[end] == 13
            defer { line.removeAll(keepingCapacity: line.count <= 65_536) }
            if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
            isFirstLine = false
            if let event = try take(line) { events.append(event) }
        }
        return events
    }

    /// Compares bytes: as a `Character`, a colon or a space with a combining accent would not be recognized.
    private mutating func take(_ line: [UInt8]) throws(RingbackError) -> Event? {
        guard !line.isEmpty else {
            lastID = id
            defer {
                name = ""
                data = []
                size = 0
            }
            guard !data.isEmpty else { return nil }
            return Event(id: id, name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"))
        }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        var bytes = colon.map { line[($0 + 1)...] } ?? []
        if bytes.first == UInt8(ascii: " ") { bytes = bytes.dropFirst() }
        let value = String(decoding: bytes, as: UTF8.self)
        switch String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self) {
        // The id is sent back to the server in a header field, and also holds for later events without one.
        case "id": if !bytes.contains(0) { id = value }
        case "event": name = value
        case "retry":
            if !bytes.isEmpty, bytes.allSatisfy({ (0x30...0x39).contains($0) }) { retry = Int(value) ?? retry }
        case "data":
            size += value.utf8.count
            guard size <= limit else {
                throw RingbackError(.badResponse, "The server sent an event without end.")
            }
            data.append(value)
        default: break
        }
        return nil
    }
}
