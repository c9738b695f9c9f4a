import FoundationEssentials
import Testing

/// What the fuzzer has kept (Fuzz/corpora): every input is checked against every law of its target, and so are some
/// thousand inputs made of them.
@Suite struct `Inputs that the fuzzer kept` {
    /// Changed inputs for each target: some seconds for all of them together. `make fuzz` looks for minutes.
    private static let mutations = 2_000
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fuzz/corpora")

    private func inputs(_ name: String) throws -> [(file: String, bytes: [UInt8])] {
        let folder = Self.folder.appending(path: name)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path()).sorted().map { file in
            (file, Array(try Data(contentsOf: folder.appending(path: file))))
        }
    }

    @Test func `there are some of every target`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path())
        #expect(Set(names) == Set(FuzzTarget.all.map(\.name)))
    }

    @Test(arguments: FuzzTarget.all.map(\.name)) func `break no law`(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let inputs = try inputs(name)
        #expect(!inputs.isEmpty)
        for input in inputs {
            #expect(throws: Never.self, "\(name)/\(input.file)") { try target.check(input.bytes) }
        }
    }

    @Test(arguments: FuzzTarget.all.map(\.name)) func `break no law when they are changed`(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let inputs = try inputs(name).map(\.bytes)
        var mutator = Mutator(seed: 1)
        for _ in 0..<Self.mutations {
            let input = mutator.input(from: inputs)
            do {
                try target.check(input)
            } catch {
                Issue.record("\(error), by \(name) with \(Data(input).base64EncodedString())")
                return
            }
        }
    }
}
