package import RingbackAPI
package import RingbackBase

/// One HTTP/1.1 request and its response over a connection of its own; ``HTTPResponseReader`` parses the bytes.
package final class HTTPExchange {
    private let connection: SocketConnection
    private var reader = HTTPResponseReader()
    package init(_ connection: SocketConnection) { self.connection = connection }

    /// Sends a request. Field values must be free of line breaks; `Content-Length` is added where there is a body.
    package func send(
        _ method: String, _ target: String, fields: [HTTPFields.Field], body: [UInt8]? = nil
    ) throws(RingbackError) {
        // One write, so that a short request is one packet and one read for the server.
        try connection.send(HTTPExchange.bytes(method, target, fields: fields, body: body))
    }

    static func bytes(_ method: String, _ target: String, fields: [HTTPFields.Field], body: [UInt8]? = nil) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        if let body { head += "Content-Length: \(body.count)\r\n" }
        head += "\r\n"
        return Array(head.utf8) + (body ?? [])
    }

    /// Reads the response up to its body; once, before the body. Interim responses (1xx) are skipped.
    package func readHead() throws(RingbackError) -> Head {
        guard case .head(let head) = try step() else {
            throw RingbackError(.badResponse, "The server's response has no head.")
        }
        return head
    }

    /// The next piece of the body, after a wait if need be; nil at its end.
    package func nextPiece() throws(RingbackError) -> [UInt8]? {
        guard case .piece(let piece) = try step() else { return nil }
        return piece
    }

    package func readBody(limit: Int = 8 << 20) throws(RingbackError) -> [UInt8] {
        var body: [UInt8] = []
        while let piece = try nextPiece() {
            guard body.count + piece.count <= limit else {
                throw RingbackError(.badResponse, "The server sent a response of over \(limit) bytes.")
            }
            body += piece
        }
        return body
    }

    private func step() throws(RingbackError) -> HTTPResponseReader.Step {
        while true {
            let step = try reader.next()
            guard case .needsMore = step else { return step }
            let more = try connection.receive()
            if more.isEmpty { reader.close() } else { reader.append(more) }
        }
    }

    /// A response's status line and header fields, parsed as bytes (RFC 9112 sections 4 and 5). As `Character`s, a
    /// colon or a space with a combining accent would not be recognized.
    package struct Head: Sendable {
        package let status: Int
        /// Names in lower case, in the order they came; values without the space around them.
        package let fields: [HTTPFields.Field]
        /// True for HTTP/1.1, false for HTTP/1.0.
        let isCurrent: Bool

        /// The first field of the name (lower case).
        package func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        package func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

        /// - Parameter bytes: without the empty line at the end.
        init(parsing bytes: ArraySlice<UInt8>) throws(RingbackError) {
            var rest = bytes
            (status, isCurrent) = try Head.status(Head.nextLine(of: &rest))
            var fields: [HTTPFields.Field] = []
            while !rest.isEmpty { fields.append(try Head.field(Head.nextLine(of: &rest))) }
            self.fields = fields
        }

        /// True for a byte that may be in a line: no control character but the tab.
        static func isFieldByte(_ byte: UInt8) -> Bool { (byte >= 0x20 && byte != 0x7F) || byte == 0x09 }

        /// Changes ASCII letters only: the Kelvin sign is not a k.
        static func lowercased(_ bytes: some Sequence<UInt8>) -> String {
            String(decoding: bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        }

        /// Takes the bytes up to the next CR LF, or all that are left.
        private static func nextLine(of bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
            var index = bytes.startIndex
            while index + 1 < bytes.endIndex {
                if bytes[index] == 13, bytes[index + 1] == 10 {
                    defer { bytes = bytes[(index + 2)...] }
                    return bytes[..<index]
                }
                index += 1
            }
            defer { bytes = [] }
            return bytes
        }

        private static func status(_ line: ArraySlice<UInt8>) throws(RingbackError) -> (Int, Bool) {
            let failure = RingbackError(.badResponse, "The server sent a status line that is not HTTP/1.1.")
            guard line.allSatisfy(isFieldByte), line.count >= 12, line.starts(with: "HTTP/1.".utf8) else {
                throw failure
            }
            let rest = line.dropFirst(7)
            guard let minor = rest.first, minor == UInt8(ascii: "1") || minor == UInt8(ascii: "0"),
                rest.dropFirst().first == UInt8(ascii: " ")
            else { throw failure }
            let digits = rest.dropFirst(2).prefix { $0 != UInt8(ascii: " ") }
            guard digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }),
                let status = Int(String(decoding: digits, as: UTF8.self)), status >= 100
            else { throw failure }
            return (status, minor == UInt8(ascii: "1"))
        }

        private static func field(_ line: ArraySlice<UInt8>) throws(RingbackError) -> HTTPFields.Field {
            guard line.allSatisfy(isFieldByte) else {
                throw RingbackError(.badResponse, "The server sent a header line with a control character.")
            }
            let name = line.prefix { $0 != UInt8(ascii: ":") }
            // No space before the colon, and no line that continues the one before.
            guard !name.isEmpty, name.count < line.count, name.allSatisfy(HTTPFields.isTokenByte) else {
                throw RingbackError(.badResponse, "The server sent a header line without a name.")
            }
            var value = line[name.endIndex...].dropFirst()
            while let byte = value.first, byte == 0x20 || byte == 0x09 { value = value.dropFirst() }
            while let byte = value.last, byte == 0x20 || byte == 0x09 { value = value.dropLast() }
            return HTTPFields.Field(lowercased(name), String(decoding: value, as: UTF8.self))
        }
    }
}

/// Parses one HTTP/1.1 response (RFC 9112) as its bytes arrive: a head, and a body by its length, in chunks, or until
/// the server closes. The result does not depend on how the bytes were split. Ambiguous input is refused.
struct HTTPResponseReader {
    enum Step {
        /// Comes once, first. Interim responses (1xx) are skipped.
        case head(HTTPExchange.Head)
        case piece([UInt8])
        case end
        /// More bytes are needed, or ``close()``.
        case needsMore
    }

    private enum State {
        case head
        case length(Int)
        case untilClose
        case chunkSize
        case chunk(Int)
        case chunkEnd
        case trailer(Int)
        case ended
    }

    /// Bytes.
    static let maxHead = 65_536
    /// Bytes of a line between chunks.
    static let maxLine = 4_096
    static let maxTrailers = 64
    private var buffer: [UInt8] = []
    /// Where the bytes begin that have not been taken.
    private var position = 0
    /// The position up to which the end of a head or a line has been searched for.
    private var scanned = 0
    private var isClosed = false
    private var state = State.head

    mutating func append(_ bytes: [UInt8]) {
        buffer.removeFirst(position)
        scanned = max(0, scanned - position)
        position = 0
        buffer += bytes
    }

    /// The next response follows. The memory of the former one is given back, since a token may have been in it.
    mutating func beginNext() {
        buffer = Array(buffer[position...])
        (position, scanned, state) = (0, 0, .head)
    }

    mutating func close() { isClosed = true }

    /// - Throws: `bad_response` if this is not an HTTP response, `no_daemon` if nothing came at all.
    mutating func next() throws(RingbackError) -> Step {
        while true {
            switch state {
            case .head:
                guard let text = try take(until: [13, 10, 13, 10], atMost: HTTPResponseReader.maxHead) else {
                    return try more()
                }
                let head = try HTTPExchange.Head(parsing: text)
                guard head.status >= 200 else { continue }
                state = try HTTPResponseReader.state(after: head)
                return .head(head)
            case .length(0), .ended:
                state = .ended
                return .end
            case .length(let left):
                guard let piece = take(atMost: left) else { return try more() }
                state = .length(left - piece.count)
                return .piece(piece)
            case .untilClose:
                if let piece = take(atMost: .max) { return .piece(piece) }
                guard isClosed else { return .needsMore }
                state = .ended
            case .chunk(let left):
                guard let piece = take(atMost: left) else { return try more() }
                state = piece.count == left ? .chunkEnd : .chunk(left - piece.count)
                return .piece(piece)
            case .chunkSize, .chunkEnd, .trailer:
                guard let line = try take(until: [13, 10], atMost: HTTPResponseReader.maxLine) else {
                    return try more()
                }
                state = try HTTPResponseReader.state(after: line, state)
            }
        }
    }

    private static func state(after head: HTTPExchange.Head) throws(RingbackError) -> State {
        if head.status == 204 || head.status == 304 { return .ended }
        let codings = head.all("transfer-encoding")
        let lengths = head.all("content-length")
        guard let coding = codings.first else {
            guard let text = lengths.first else { return .untilClose }
            // Digits only, and no two different lengths (RFC 9112 section 6.3).
            guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(text),
                lengths.allSatisfy({ $0 == text })
            else { throw bad("a length that is not a number") }
            return .length(length)
        }
        guard codings.count == 1, HTTPExchange.Head.lowercased(coding.utf8) == "chunked", head.isCurrent else {
            throw bad("an unknown transfer coding")
        }
        guard lengths.isEmpty else { throw bad("a body with two ends") }
        return .chunkSize
    }

    private static func state(after line: ArraySlice<UInt8>, _ state: State) throws(RingbackError) -> State {
        guard line.allSatisfy(HTTPExchange.Head.isFieldByte) else { throw bad("a control character between chunks") }
        switch state {
        case .chunkSize:
            let size = try chunkSize(line)
            return size > 0 ? .chunk(size) : .trailer(0)
        case .chunkEnd:
            guard line.isEmpty else { throw bad("a chunk longer than its size") }
            return .chunkSize
        case .trailer(let count):
            guard !line.isEmpty else { return .ended }
            guard count < maxTrailers else { throw bad("trailers without end") }
            return .trailer(count + 1)
        default: return state
        }
    }

    /// No sign, no prefix, no space, and no more digits than 256 MiB need. An extension is ignored.
    private static func chunkSize(_ line: ArraySlice<UInt8>) throws(RingbackError) -> Int {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard (1...7).contains(digits.count) else { throw bad("a chunk without a size") }
        var size = 0
        for byte in digits {
            guard let digit = byte.hexValue else { throw bad("a chunk without a size") }
            size = size << 4 | Int(digit)
        }
        return size
    }

    private mutating func take(atMost limit: Int) -> [UInt8]? {
        let count = min(limit, buffer.count - position)
        guard count > 0 else { return nil }
        defer {
            position += count
            scanned = position
        }
        return Array(buffer[position..<(position + count)])
    }

    /// The bytes before the mark; nil if the mark has not arrived yet.
    private mutating func take(until mark: [UInt8], atMost limit: Int) throws(RingbackError) -> ArraySlice<UInt8>? {
        var index = max(position, scanned)
        while index + mark.count <= buffer.count, index - position <= limit {
            guard buffer[index...].starts(with: mark) else {
                index += 1
                continue
            }
            defer {
                position = index + mark.count
                scanned = position
            }
            return buffer[position..<index]
        }
        guard index - position <= limit else { throw HTTPResponseReader.bad("a line or a head that does not end") }
        scanned = index
        return nil
    }

    private func more() throws(RingbackError) -> Step {
        guard isClosed else { return .needsMore }
        if case .head = state, position == buffer.count {
            throw RingbackError(.noDaemon, "The connection was closed without a response.", recovery: .retry)
        }
        throw RingbackError(.badResponse, "The server's response ended too early.", recovery: .retry)
    }

    private static func bad(_ what: String) -> RingbackError { RingbackError(.badResponse, "The server sent \(what).") }
}

/// Builds the request targets of the socket API. What comes from outside is escaped, or refused where the API has no
/// escapes, so that a name or a scope can never become another path or parameter. Parameters are added one by one, as
/// bytes: the first use of a generic function or of an array of tuples makes Swift's runtime search for types, which
/// takes longer than the whole request of `ringback token`.
package struct RequestTarget {
    private static let account = Array("account".utf8)
    private var bytes: [UInt8] = []
    private var hasQuery = false

    package static func isAccountName(_ name: String) -> Bool { name.isAccountName }

    /// - Throws: `account_not_found` for what no account can be called.
    package static func checkAccount(_ name: String) throws(RingbackError) {
        guard isAccountName(name) else {
            throw RingbackError(
                .accountNotFound,
                "“\(name)” cannot be an account's name: small letters, digits, “.”, “_” and “-” can, at most 64.",
                recovery: .fixConfiguration)
        }
    }

    /// The target of an endpoint: `values` take the place of its path's parameters. Throws `account_not_found`.
    package static func of(
        _ endpoint: Endpoint, _ values: [String] = [], query pairs: [(String, String?)] = []
    ) throws(RingbackError) -> String {
        var target = try RequestTarget(endpoint, values)
        for (name, value) in pairs { target.add(name, value) }
        return target.text
    }

    package init(_ endpoint: Endpoint, _ values: [String] = []) throws(RingbackError) {
        var next = 0
        var name: [UInt8]?
        for byte in endpoint.path.utf8 {
            switch (byte, name) {
            case (UInt8(ascii: "{"), _): name = []
            case (UInt8(ascii: "}"), let ended?):
                let value = next < values.count ? values[next] : ""
                next += 1
                if ended == RequestTarget.account { try RequestTarget.checkAccount(value) }
                appendEscaped(value)
                name = nil
            case (_, nil): bytes.append(byte)
            case (_, _?): name?.append(byte)
            }
        }
    }

    package mutating func add(_ name: String, _ value: String?) {
        guard let value else { return }
        bytes.append(hasQuery ? UInt8(ascii: "&") : UInt8(ascii: "?"))
        hasQuery = true
        appendEscaped(name)
        bytes.append(UInt8(ascii: "="))
        appendEscaped(value)
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Appends the text with everything but the unreserved characters of RFC 3986 escaped.
    private mutating func appendEscaped(_ text: String) {
        for byte in text.utf8 {
            if byte.isUnreserved { bytes.append(byte) } else { bytes += byte.percentEscape }
        }
    }
}
