import FoundationEssentials
import Testing

/// A case from Tests/Vectors: a head of `name: value` lines, an empty line, and the content, byte for byte.
struct VectorFile: Sendable, CustomTestStringConvertible {
    let name: String
    let head: [(name: String, value: String)]
    let content: [UInt8]

    var testDescription: String { name }

    subscript(name: String) -> String? { head.first { $0.name == name }?.value }

    func all(_ name: String) -> [String] { head.filter { $0.name == name }.map(\.value) }
    func number(_ name: String) -> Int? { self[name].flatMap { Int($0) } }

    init(name: String, bytes: [UInt8]) {
        var lines: [(String, String)] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: 0x0A) {
            let line = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            guard !line.isEmpty else { break }
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            lines.append((parts[0], parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""))
        }
        self.name = name
        self.head = lines
        self.content = Array(rest.last == 0x0A ? rest.dropLast() : rest)
    }

    /// Every case of a folder; empty if the folder is not there, which the tests notice.
    static func all(in folder: String) -> [VectorFile] {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Vectors/\(folder)")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path.path())) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted().compactMap { name in
            (try? Data(contentsOf: path.appending(path: name))).map { VectorFile(name: name, bytes: Array($0)) }
        }
    }

    static func bytes(of file: String) -> [UInt8]? {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Vectors/\(file)")
        return (try? Data(contentsOf: path)).map { Array($0) }
    }
}

struct Unexpected: Error {
    let what: String
    init<Value>(_ what: Value) { self.what = "\(what)" }
}
