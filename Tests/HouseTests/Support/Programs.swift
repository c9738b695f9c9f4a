import Glibc
import RingbackBase
import Testing

enum Programs {
    /// `RINGBACK_TEST_BIN`, else the directory that this test program was built into.
    static let directory: String = {
        if let stated = variable("RINGBACK_TEST_BIN"), !stated.isEmpty { return stated }
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer[..<max(count, 0)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return String(own[..<(own.lastIndex(of: "/") ?? own.startIndex)])
    }()

    static func path(_ name: String) -> String { name.contains("/") ? name : "\(directory)/\(name)" }

    static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }
}

struct Output: Sendable, CustomStringConvertible {
    /// The exit status; 128 and the signal's number for one that a signal ended.
    let status: Int32
    let out: String
    let err: String

    var lines: [String] { out.split(separator: "\n").map(String.init) }
    var json: JSON { get throws { try JSON(parsing: out.utf8) } }
    var description: String { "status \(status)\n--- out\n\(out)--- err\n\(err)---" }

    /// Checks the exit status and what else is named: the whole of standard output, and what standard output (`prints`)
    /// and standard error (`says`) contain.
    @discardableResult
    func expect(
        _ status: Int32, out: String? = nil, prints: String..., says: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Output {
        check([], status, out: out, prints: prints, says: says, at: sourceLocation)
        return self
    }

    func check(
        _ arguments: [String], _ status: Int32?, out: String?, prints: [String], says: [String],
        at place: SourceLocation
    ) {
        let what = arguments.isEmpty ? "\(self)" : "\(arguments): \(self)"
        if let status { #expect(self.status == status, "\(what)", sourceLocation: place) }
        if let out { #expect(self.out == out, "\(what)", sourceLocation: place) }
        for words in prints { #expect(self.out.contains(words), "\(words): \(what)", sourceLocation: place) }
        for words in says { #expect(err.contains(words), "\(words): \(what)", sourceLocation: place) }
    }
}

extension Programs {
    /// Builds an example below `.build`; gives the executable's path. The first build takes half a minute.
    ///
    /// What an older state of the package has left there may not fit: its modules had other names. Then it is removed, and
    /// the example is built once more.
    static func example(
        _ name: String, in scratch: String = "\(Document.root)/.build/examples",
        by swift: String = variable("SWIFT") ?? "swift"
    ) async throws -> String {
        if try await buildExample(name, in: scratch, by: swift).status != 0 {
            FileTree.remove(scratch)
            let again = try await buildExample(name, in: scratch, by: swift)
            guard again.status == 0 else { throw Late(what: "the example \(name), not \(again)") }
        }
        return "\(scratch)/debug/\(name)"
    }

    private static func buildExample(_ name: String, in scratch: String, by swift: String) async throws -> Output {
        let arguments = [
            swift, "build", "--package-path", "\(Document.root)/Examples/\(name)",
            // The folder is shared by several packages: without this option a build may end at once, with status 0 and
            // without the executable, because the package that was built there before has not changed.
            "--disable-build-manifest-caching", "--scratch-path", scratch,
        ]
        let environment = ["PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "SSL_CERT_FILE", "https_proxy"].reduce(into: [:])
        {
            $0[$1] = Programs.variable($1)
        }
        return try await Program("/usr/bin/env", arguments, environment: environment).end(within: Bound.seconds(300))
    }
}
