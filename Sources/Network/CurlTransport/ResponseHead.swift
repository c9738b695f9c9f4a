internal import RingbackBase

/// Collects the header fields of a response, line by line. libcurl passes on the lines of every head, including interim
/// responses (RFC 9110 section 15.2), and the trailers. Only the lines of the last head are kept.
struct ResponseHead {
    /// An endless head must not fill the memory. All lines count.
    static let maxBytes = 65_536

    private enum Place {
        case start
        case fields(isInterim: Bool)
        case end
    }

    private var place = Place.start
    private var count = 0
    private var pairs: [(name: String, value: String)] = []
    private(set) var isTooLarge = false
    /// Of the final response.
    var isComplete: Bool { if case .end = place { true } else { false } }
    var fields: HTTPFields { HTTPFields(pairs.map { ($0.name, $0.value) }) }

    /// A line with its line break. False ends the transfer.
    mutating func take(_ line: RawSpan) -> Bool {
        count += line.byteCount
        guard count <= ResponseHead.maxBytes else {
            isTooLarge = true
            return false
        }
        let bytes = ResponseHead.withoutEnd(line)
        switch place {
        case .start:
            // Another head follows an informational response such as "HTTP/1.1 103 Early Hints".
            let status = bytes.split(separator: 0x20).dropFirst().first
            place = .fields(isInterim: status?.first == UInt8(ascii: "1"))
            pairs = []
        case .fields(let isInterim):
            guard !bytes.isEmpty else {
                place = isInterim ? .start : .end
                return true
            }
            addField(bytes)
        case .end: break
        }
        return true
    }

    private mutating func addField(_ line: ArraySlice<UInt8>) {
        if line.first == 0x20 || line.first == 0x09, !pairs.isEmpty {
            // A folded line (RFC 9112 section 5.2) continues the value before it.
            pairs[pairs.count - 1].value += " " + ResponseHead.text(line)
            return
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return }
        pairs.append((ResponseHead.text(line[..<colon]), ResponseHead.text(line[(colon + 1)...])))
    }

    private static func withoutEnd(_ line: RawSpan) -> ArraySlice<UInt8> {
        var bytes = unsafe line.withUnsafeBytes { unsafe [UInt8]($0) }[...]
        while let last = bytes.last, last == 0x0D || last == 0x0A { bytes.removeLast() }
        return bytes
    }

    /// Without surrounding whitespace.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        var bytes = bytes.drop(while: isSpace)
        while let last = bytes.last, isSpace(last) { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
