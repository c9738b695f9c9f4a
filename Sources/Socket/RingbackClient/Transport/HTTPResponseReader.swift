/// Parses one HTTP/1.1 response as its bytes arrive: a head, and a body by its length, in chunks, or until the server
/// closes (RFC 9112). The result does not depend on how the bytes were split. Nothing is corrected: ambiguous input is
/// refused.
struct HTTPResponseReader {
    /// What the bytes so far have yielded.
    enum Step {
        /// Comes once, first. Interim responses (1xx) are skipped.
        case head(HTTPExchange.Head)
        /// Bytes of the body, at least one.
        case piece([UInt8])
        /// The body is whole.
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
        /// With the number of lines so far.
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

    /// Takes bytes that came.
    mutating func append(_ bytes: [UInt8]) {
        buffer.removeFirst(position)
        scanned = max(0, scanned - position)
        position = 0
        buffer += bytes
    }

    /// After the end of a response over a kept connection: the bytes that follow are the next one's. The memory of the
    /// former response is given back, since a token may have been in it.
    mutating func beginNext() {
        buffer = Array(buffer[position...])
        (position, scanned, state) = (0, 0, .head)
    }

    /// Reports that the server has closed the connection.
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

    // MARK: What follows

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

    /// The digits from the line's start to its end or to an extension, which is ignored. No sign, no prefix, no space,
    /// and no more digits than 256 MiB need.
    private static func chunkSize(_ line: ArraySlice<UInt8>) throws(RingbackError) -> Int {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard (1...7).contains(digits.count) else { throw bad("a chunk without a size") }
        var size = 0
        for byte in digits {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw bad("a chunk without a size") }
            size = size << 4 | digit
        }
        return size
    }

    // MARK: Bytes

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
