import Configuration
import Glibc
import Testing

/// Files with mistakes; the head of each says every error that must be found, no more and no fewer:
/// `# error LINE KEY: BEGINNING OF THE MESSAGE`. `DIRECTORY` stands for where the file is.
@Suite struct `Bad configuration files` {
    private struct Vector {
        var expected: [String] = []
        var mode: mode_t = 0o600
        var isDropIn = false

        init(_ bytes: [UInt8]) {
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
                guard line.hasPrefix("# ") else { break }
                if line.hasPrefix("# error ") { expected.append(String(line.dropFirst("# error ".count))) }
                if line.hasPrefix("# mode ") { mode = mode_t(line.dropFirst("# mode ".count), radix: 8) ?? 0o600 }
                if line == "# a drop-in" { isDropIn = true }
            }
        }
    }

    private static let directory: String = {
        let here = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(here)/Vectors/configuration"
    }()

    private static var all: [String] { (try? names(in: directory).filter { $0.hasSuffix(".toml") }) ?? [] }

    @Test func `there are some`() {
        #expect(Self.all.count >= 60)
    }

    @Test(arguments: all) func `have just the errors that their heads say`(name: String) throws {
        let bytes = try content(of: "\(Self.directory)/\(name)")
        let vector = Vector(bytes)
        let folder = try Folder()
        if vector.isDropIn {
            try folder.makeDirectory("accounts.d")
            try folder.write("")
        }
        let file = try folder.write(
            bytes, to: vector.isDropIn ? "accounts.d/config.toml" : "config.toml", mode: vector.mode)
        let report = folder.report()
        let found = report.errors.map { error in
            let place = [error.line.map(String.init), error.key].compactMap(\.self).joined(separator: " ")
            return "\(place): \(error.message)"
        }
        #expect(report.errors.allSatisfy { $0.file == file })
        #expect(!vector.expected.isEmpty)
        #expect(found.count == vector.expected.count, "\(found)")
        for (found, expected) in zip(found, vector.expected) {
            let expected = expected.split(separator: "DIRECTORY").joined(separator: folder.path)
            #expect(found.hasPrefix(expected))
        }
    }
}
