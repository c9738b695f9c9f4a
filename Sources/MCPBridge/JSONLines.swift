internal import Encodings

// The messages of a stdio client: one JSON text a line, without line breaks in it.

/// Splits what a client writes into messages, however the bytes are cut on their way. The bytes of a message are not
/// changed.
public struct JSONLines: Sendable {
    /// What a line was.
    public enum Piece: Sendable, Equatable {
        /// The line without its line feed.
        case message([UInt8])
        /// A line of more bytes than the limit. Its bytes are gone.
        case tooLong
    }

    /// Bytes of one message: 16 MiB.
    public static let limit = 16 << 20

    private let limit: Int
    private var line: [UInt8] = []
    private var isTooLong = false

    /// - Parameter limit: bytes of one message.
    public init(limit: Int = JSONLines.limit) { self.limit = limit }

    /// Bytes of the message that has not ended yet.
    public var pending: Int { line.count }

    /// Takes bytes and returns the lines that they ended. Empty lines are left out.
    public mutating func append(_ bytes: [UInt8]) -> [Piece] {
        var pieces: [Piece] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: 10) {
            take(rest[..<end])
            if let piece = endLine() { pieces.append(piece) }
            rest = rest[(end + 1)...]
        }
        take(rest)
        return pieces
    }

    /// The last line, if the client ended without a line feed.
    public mutating func finish() -> Piece? { endLine() }

    private mutating func take(_ bytes: ArraySlice<UInt8>) {
        guard !isTooLong else { return }
        guard line.count + bytes.count <= limit else {
            isTooLong = true
            line = []
            return
        }
        line += bytes
    }

    private mutating func endLine() -> Piece? {
        defer {
            line = []
            isTooLong = false
        }
        if isTooLong { return .tooLong }
        return line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D } ? nil : .message(line)
    }

    /// A message as one line. In JSON a line break stands only between tokens, where a space means the same.
    public static func line(of message: [UInt8]) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(message.count + 1)
        line += message
        line.append(10)
        var place = ByteSearch.lineEnd(in: message.span, from: 0)
        while place < message.count {
            line[place] = 0x20
            place = ByteSearch.lineEnd(in: message.span, from: place + 1)
        }
        return line
    }
}
