/// One HTTP/1.1 request and its answer over a connection of its own (RFC 9112), as far as our own servers need it:
/// a body by length, in chunks, or until the server closes.
package final class HTTPExchange {
    /// What stands before an answer's body.
    package struct Head: Sendable {
        package let status: Int
        /// Names in lower case, in the order they came.
        package let fields: [(name: String, value: String)]

        /// The first field of the name (lower case).
        package func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }

        /// Every field of the name (lower case).
        package func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }
    }

    private enum Framing {
        case length(Int)
        case chunked
        case untilClose
        case ended
    }

    private static let maxHead = 65_536
    private let connection: SocketConnection
    private var buffer: [UInt8] = []
    private var framing = Framing.ended

    package init(_ connection: SocketConnection) { self.connection = connection }

    /// Sends a request. Field values must be free of line breaks; `Content-Length` is added where there is a body.
    package func send(
        _ method: String, _ target: String, fields: [(String, String)], body: [UInt8]? = nil
    ) throws(RingbackError) {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if let body { head += "Content-Length: \(body.count)\r\n" }
        head += "\r\n"
        // One write: a short request is then one packet, and one read for the server.
        try connection.send(Array(head.utf8) + (body ?? []))
    }

    /// Reads the answer up to its body. Interim answers (1xx) are skipped.
    package func readHead() throws(RingbackError) -> Head {
        while true {
            let head = try parseHead(try readHeadLines())
            guard head.status >= 200 else { continue }
            framing = try HTTPExchange.framing(of: head)
            return head
        }
    }

    /// The next piece of the body, after a wait if need be; nil at its end.
    package func nextPiece() throws(RingbackError) -> [UInt8]? {
        switch framing {
        case .ended: return nil
        case .untilClose:
            let piece = try takeBuffered(atMost: .max)
            if piece.isEmpty { framing = .ended }
            return piece.isEmpty ? nil : piece
        case .length(let left):
            guard left > 0 else {
                framing = .ended
                return nil
            }
            let piece = try takeBuffered(atMost: left)
            guard !piece.isEmpty else { throw HTTPExchange.cut() }
            framing = .length(left - piece.count)
            return piece
        case .chunked: return try nextChunk()
        }
    }

    /// The whole body.
    package func readBody(limit: Int = 8 << 20) throws(RingbackError) -> [UInt8] {
        var body: [UInt8] = []
        while let piece = try nextPiece() {
            guard body.count + piece.count <= limit else { throw HTTPExchange.bad("an answer of over \(limit) bytes") }
            body += piece
        }
        return body
    }

    // MARK: The head

    private func readHeadLines() throws(RingbackError) -> [Substring] {
        let end: [UInt8] = [13, 10, 13, 10]
        var scanned = 0
        while true {
            var index = max(0, scanned - 3)
            while index + 4 <= buffer.count {
                if buffer[index] == 13, Array(buffer[index..<(index + 4)]) == end {
                    let text = String(decoding: buffer[..<index], as: UTF8.self)
                    buffer.removeFirst(index + 4)
                    return text.split(separator: "\r\n", omittingEmptySubsequences: false)
                }
                index += 1
            }
            scanned = buffer.count
            guard buffer.count <= HTTPExchange.maxHead else { throw HTTPExchange.bad("a head that does not end") }
            let more = try connection.receive()
            guard !more.isEmpty else {
                if buffer.isEmpty {
                    throw RingbackError(
                        .noDaemon, "The connection was closed without an answer.", recovery: .retry)
                }
                throw HTTPExchange.cut()
            }
            buffer += more
        }
    }

    private func parseHead(_ lines: [Substring]) throws(RingbackError) -> Head {
        guard let first = lines.first else { throw HTTPExchange.bad("no status line") }
        let words = first.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3, let status = Int(words[1]),
            status >= 100
        else { throw HTTPExchange.bad("a status line that is not HTTP/1.1") }
        var fields: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw HTTPExchange.bad("a header line with a control character")
            }
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon != line.startIndex else {
                throw HTTPExchange.bad("a header line without a name")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append((line[..<colon].lowercased(), String(value)))
        }
        return Head(status: status, fields: fields)
    }

    private static func framing(of head: Head) throws(RingbackError) -> Framing {
        if head.status == 204 || head.status == 304 { return .ended }
        if let coding = head.field("transfer-encoding") {
            guard coding.lowercased() == "chunked" else { throw bad("an unknown transfer coding") }
            return .chunked
        }
        if let text = head.field("content-length") {
            // Digits and nothing else, and no second opinion (RFC 9112 section 6.3).
            guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(text),
                head.all("content-length").allSatisfy({ $0 == text })
            else { throw bad("a length that is not a number") }
            return .length(length)
        }
        return .untilClose
    }

    // MARK: The body

    private func takeBuffered(atMost limit: Int) throws(RingbackError) -> [UInt8] {
        if buffer.isEmpty { buffer = try connection.receive() }
        if buffer.count <= limit {
            defer { buffer = [] }
            return buffer
        }
        let piece = Array(buffer[..<limit])
        buffer.removeFirst(limit)
        return piece
    }

    private func nextChunk() throws(RingbackError) -> [UInt8]? {
        let line = try readLine()
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard digits.count <= 7, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0 else {
            throw HTTPExchange.bad("a chunk without a size")
        }
        if size == 0 {
            while try !readLine().isEmpty {}
            framing = .ended
            return nil
        }
        var chunk: [UInt8] = []
        while chunk.count < size {
            let piece = try takeBuffered(atMost: size - chunk.count)
            guard !piece.isEmpty else { throw HTTPExchange.cut() }
            chunk += piece
        }
        guard try readLine().isEmpty else { throw HTTPExchange.bad("a chunk longer than its size") }
        return chunk
    }

    private func readLine() throws(RingbackError) -> [UInt8] {
        while true {
            if let newline = buffer.firstIndex(of: 10) {
                var line = Array(buffer[..<newline])
                buffer.removeFirst(newline + 1)
                if line.last == 13 { line.removeLast() }
                return line
            }
            guard buffer.count <= 4_096 else { throw HTTPExchange.bad("a chunk size that does not end") }
            let more = try connection.receive()
            guard !more.isEmpty else { throw HTTPExchange.cut() }
            buffer += more
        }
    }

    private static func bad(_ what: String) -> RingbackError {
        RingbackError(.badAnswer, "The server sent \(what).")
    }

    private static func cut() -> RingbackError {
        RingbackError(.badAnswer, "The server's answer ended too early.", recovery: .retry)
    }
}
