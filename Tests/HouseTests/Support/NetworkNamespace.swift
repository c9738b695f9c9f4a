import Glibc
import Testing

/// A network of a test's own: a script of Tests/Programs lives in a network namespace and tells what it saw there. It is
/// judged outside.
enum NetworkNamespace {
    /// By root at once, by others in a user namespace, where the kernel lends one.
    private static let options: [String]? = [["-n"], ["-r", "-n"]].first { options in
        var pid: pid_t = 0
        var vector = unsafe (["/usr/bin/unshare"] + options + ["/bin/true"]).map { unsafe strdup($0) } + [nil]
        defer { unsafe vector.forEach { unsafe free($0) } }
        var status: Int32 = -1
        guard unsafe posix_spawn(&pid, "/usr/bin/unshare", nil, nil, &vector, nil) == 0 else { return false }
        return unsafe waitpid(pid, &status, 0) == pid && status == 0
    }
    static let isPossible = options != nil
    static let reason: Comment = "the kernel, or what guards it, lends no network namespace"

    static func run(_ script: String, _ arguments: String..., on stage: Stage) async throws -> Output {
        try await stage.run(
            "/usr/bin/unshare",
            try #require(options) + ["python3", "-B", "\(Document.root)/Tests/Programs/\(script)"] + arguments,
            environment: ["RINGBACK_TEST_PATIENCE": Programs.variable("RINGBACK_TEST_PATIENCE") ?? ""],
            within: Bound.seconds(120))
    }
}
