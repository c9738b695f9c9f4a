import FoundationEssentials
import Testing

/// A case from Tests/Vectors/request-heads; the README there says how it is written.
struct RequestVector: Sendable, CustomTestStringConvertible {
    let name: String
    private let notes: [String: String]
    let bytes: [UInt8]

    var testDescription: String { name }

    subscript(note: String) -> String? { notes[note] }

    /// What to expect of a server of one request per connection, or of the other kind.
    func expectation(isSingleRequest: Bool) -> String {
        (isSingleRequest ? notes["single"] : nil) ?? notes["expect"] ?? "nothing: the file has no such line"
    }

    init(name: String, text: String) {
        var notes: [String: String] = [:]
        var bytes: [UInt8] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# "), let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                notes[String(line[..<colon].dropFirst(2))] = String(value)
            } else {
                bytes += RequestVector.unescape(line)
            }
        }
        self.name = name
        self.notes = notes
        self.bytes = bytes
    }

    private static func unescape(_ line: Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(line.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let letter = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch letter {
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "0"): bytes.append(0)
            default:
                bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            }
        }
        return bytes
    }

    static let all: [RequestVector] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Vectors/request-heads")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted().compactMap { name in
            guard let data = try? Data(contentsOf: folder.appending(path: name)) else { return nil }
            return RequestVector(name: String(name.dropLast(4)), text: String(decoding: data, as: UTF8.self))
        }
    }()
}
