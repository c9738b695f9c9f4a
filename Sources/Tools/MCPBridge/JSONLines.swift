internal import RingbackBase

// The messages of a stdio client: one JSON text a line, without line breaks in it.

/// Splits what a client writes into messages, however the bytes are cut on their way. The bytes of a message are not
/// changed.
public struct JSONLines: Sendable {
    public enum Piece: Sendable, Equatable {
        /// The line without its line feed.
        case message([UInt8])
        /// A line of more bytes than the limit. Its bytes are gone; if it was a request, this is its id.
        case tooLong(MessageID?)
    }

    /// Bytes of one message: 16 MiB.
    public static let limit = 16 << 20

    private let limit: Int
    private var line: [UInt8] = []
    /// The line has more bytes than the limit, and only its id is looked for.
    private var passing: PassingID?

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
        guard passing == nil, line.count + bytes.count <= limit else {
            var found = passing ?? PassingID()
            passing = nil
            found.read(line[...])
            found.read(bytes)
            passing = found
            line = []
            return
        }
        line += bytes
    }

    private mutating func endLine() -> Piece? {
        defer {
            line = []
            passing = nil
        }
        if let passing { return .tooLong(passing.id) }
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

/// Finds the id of a request that is too long to be kept, while its bytes pass. Many clients write it last.
private struct PassingID {
    private var depth = 0
    private var isInText = false
    private var isEscaped = false
    /// The member of the message whose value passes.
    private var name: [UInt8]?
    /// The member's name, or the start of its value.
    private var word: [UInt8] = []
    private var found: [MessageID?] = []
    private var hasMethod = false

    /// Bytes of a name or an id.
    private static let limit = 1_024

    /// Nil for what is no request, or has two ids.
    var id: MessageID? { hasMethod && found.count == 1 ? found[0] : nil }

    mutating func read(_ bytes: ArraySlice<UInt8>) {
        for byte in bytes {
            if isInText {
                if depth == 1 { add(byte) }
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""):
                isInText = true
                if depth == 1 { add(byte) }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                if depth == 1 { add(byte) }
                depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 1 { endMember() }
                depth -= 1
            case UInt8(ascii: ",") where depth == 1: endMember()
            case UInt8(ascii: ":") where depth == 1:
                name = word
                word = []
            case 0x20, 0x09, 0x0D: break
            default: if depth == 1 { add(byte) }
            }
        }
    }

    private mutating func add(_ byte: UInt8) {
        // One byte more than fits, so that a longer word is none.
        if word.count <= PassingID.limit { word.append(byte) }
    }

    private mutating func endMember() {
        if let name {
            if name.elementsEqual("\"id\"".utf8) {
                found.append(word.count <= PassingID.limit ? MessageID(word[...]) : nil)
            }
            if name.elementsEqual("\"method\"".utf8) { hasMethod = true }
        }
        (name, word) = (nil, [])
    }
}
