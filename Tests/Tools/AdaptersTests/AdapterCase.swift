import FoundationEssentials
import Testing

/// A case of a folder of Tests/Vectors for an adapter: a head of `name: value` lines, a blank line, and the tool's bytes.
/// The page of the folder says what the lines mean.
struct AdapterCase: Sendable, CustomTestStringConvertible {
    let name: String
    let head: [String: String]
    let input: [UInt8]

    var testDescription: String { name }

    static func all(in folder: String) -> [AdapterCase] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Vectors/\(folder)")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted().compactMap { name in
            (try? Data(contentsOf: folder.appending(path: name))).map { AdapterCase(name, Array($0)) }
        }
    }

    private init(_ name: String, _ bytes: [UInt8]) {
        var head: [String: String] = [:]
        var rest = bytes[...]
        while let end = rest.firstIndex(of: 0x0A) {
            let line = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            guard let colon = line.firstIndex(of: ":") else { break }
            head[String(line[..<colon])] = String(line[line.index(after: colon)...].dropFirst())
        }
        self.name = name
        self.head = head
        input = Array(rest)
    }
}
