import FoundationEssentials
import Testing

/// What the fuzzer has kept (Fuzz/corpora): every input is checked against every law of its target.
@Suite struct `Inputs that the fuzzer kept` {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fuzz/corpora")

    @Test func `there are some of every target`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path())
        #expect(Set(names) == Set(FuzzTarget.all.map(\.name)))
    }

    @Test(arguments: FuzzTarget.all.map(\.name)) func `break no law`(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let folder = Self.folder.appending(path: name)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path())
        #expect(!files.isEmpty)
        for file in files.sorted() {
            let input = Array(try Data(contentsOf: folder.appending(path: file)))
            #expect(throws: Never.self, "\(name)/\(file)") { try target.check(input) }
        }
    }
}
