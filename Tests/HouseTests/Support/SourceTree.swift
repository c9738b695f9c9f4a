import Foundation

struct SourceTree {
    struct File {
        /// Below Sources: `Wing/Target/Folder/File.swift`.
        let path: String
        let text: String
        let source: SourceText

        var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
        var name: String { String(path.split(separator: "/").last?.dropLast(6) ?? "") }
    }

    let files: [File]

    static let project = Result { try SourceTree(folder("Sources")) }

    init(_ root: URL) throws {
        files = try SourceTree.texts(below: root).map {
            File(path: $0.path, text: $0.text, source: SourceText($0.text))
        }
    }

    static func folder(_ name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: name)
    }

    /// The folders of Sources, each with the names of its targets.
    static func wings() throws -> [String: Set<String>] {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder("Sources").path())
        return paths.reduce(into: [:]) { wings, path in
            let names = path.split(separator: "/").map(String.init)
            if names.count > 2 { wings[names[0], default: []].insert(names[1]) }
        }
    }

    static func texts(below root: URL) throws -> [(path: String, text: String)] {
        try FileManager.default.subpathsOfDirectory(atPath: root.path()).sorted()
            .filter { $0.hasSuffix(".swift") }
            .map { (path: $0, text: try String(contentsOf: root.appending(path: $0), encoding: .utf8)) }
    }

    var targets: Set<String> { Set(files.map(\.target)) }

    func files(of target: String) -> [File] { files.filter { $0.target == target } }

    struct TypeSize {
        var lines = 0
        var isActor = false
    }

    /// Lines of code of each type, `Target.Type`, over all its extensions, in whichever target these are. A type within a
    /// type counts for itself. Extensions of types that are declared nowhere here count for nothing.
    var types: [String: TypeSize] {
        var homes: [String: Set<String>] = [:]
        for file in files {
            for part in file.source.parts where part.keyword != "extension" {
                homes[part.name, default: []].insert(file.target)
            }
        }
        var sizes: [String: TypeSize] = [:]
        for file in files {
            for part in file.source.parts {
                guard let found = homes[part.name] else { continue }
                guard let home = found.contains(file.target) ? file.target : found.count == 1 ? found.first : nil
                else { continue }
                sizes["\(home).\(part.name)", default: TypeSize()].lines += part.lines
                if part.keyword == "actor" { sizes["\(home).\(part.name)"]?.isActor = true }
            }
        }
        return sizes
    }
}
