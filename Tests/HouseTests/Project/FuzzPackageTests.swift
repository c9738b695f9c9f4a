import Foundation
import Testing

/// The fuzzer is a package of its own, which `make test` does not build. It compiles the project's sources by links.
@Suite struct `The package of the fuzzer` {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    private let sources = root.appending(path: "Fuzz/Sources")
    private let manifest: String

    init() throws {
        manifest = try String(contentsOf: Self.root.appending(path: "Fuzz/Package.swift"), encoding: .utf8)
    }

    /// A copy would be out of date after the next change of the original.
    @Test func `has links to the project's folders, and no copies`() throws {
        let own: Set<String> = ["fuzz", "CFuzzer"]
        for name in try FileManager.default.contentsOfDirectory(atPath: sources.path()) where !own.contains(name) {
            let path = sources.appending(path: name).path()
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
            #expect(target?.hasPrefix("../../") == true, "Fuzz/Sources/\(name) is no link")
            // Follows the link.
            #expect(FileManager.default.fileExists(atPath: path), "Fuzz/Sources/\(name) leads nowhere")
        }
    }

    /// Each `library("Name", ["Dependency", …])` of the manifest.
    @Test func `names what its targets import`() throws {
        let project = try SourceTree.project.get()
        let targets = project.targets.union(["CLinux", "COpenSSL"])
        let libraries = manifest.components(separatedBy: "\n        library(").dropFirst()
        #expect(libraries.count > 10)
        for library in libraries {
            // The strings up to the end of the list: the name, then the dependencies.
            let strings = library.prefix { $0 != "]" }.split(separator: "\"", omittingEmptySubsequences: false)
            let named = strings.indices.filter { $0 % 2 == 1 }.map { String(strings[$0]) }
            let name = try #require(named.first)
            let folder = try SourceTree(sources.appending(path: name).resolvingSymlinksInPath())
            #expect(!folder.files.isEmpty, "\(name)")
            let imported = folder.files.reduce(into: Set<String>()) { $0.formUnion($1.source.imports) }
            let missing = imported.intersection(targets).subtracting(named)
            #expect(missing.isEmpty, "\(name) of Fuzz/Package.swift lacks \(missing)")
        }
    }
}
