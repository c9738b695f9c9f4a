import Glibc
import Testing

/// How a network of one's own is had: by root at once, by others in a user namespace, where the kernel lends one.
private let namespace: [String]? = [["-n"], ["-r", "-n"]].first { options in
    var pid: pid_t = 0
    var vector = unsafe (["/usr/bin/unshare"] + options + ["/bin/true"]).map { unsafe strdup($0) } + [nil]
    defer { unsafe vector.forEach { unsafe free($0) } }
    var status: Int32 = -1
    guard unsafe posix_spawn(&pid, "/usr/bin/unshare", nil, nil, &vector, nil) == 0 else { return false }
    return unsafe waitpid(pid, &status, 0) == pid && status == 0
}

@Suite(.enabled(if: namespace != nil, "the kernel, or what guards it, lends no network namespace"))
struct `A network that goes and comes back` {
    /// The script lives in the namespace, beside the sandbox and the daemon; it tells what it saw, and is judged here.
    @Test func `PR-20: costs no session, and is used at once, before the back-off ends`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let options = try #require(namespace)
            let place = "\(stage.directory)/away"
            FileTree.makeDirectory(place)
            let script = "\(Document.root)/Tests/Programs/network_return.py"
            let run = try await stage.run(
                "/usr/bin/unshare", options + ["python3", "-B", script, Programs.directory, place],
                environment: ["RINGBACK_TEST_PATIENCE": Programs.variable("RINGBACK_TEST_PATIENCE") ?? ""],
                within: Bound.seconds(120))
            #expect(run.status == 0, "\(run)")
            let seen = run.lines
            #expect(seen.contains("signed-in 303"), "\(run)")
            // Eight failures in a row: the ninth makes the back-off 128 s at least.
            #expect(seen.contains("failures 8"), "\(run)")
            #expect(seen.contains(#"refused [503, "provider_unreachable"]"#), "\(run)")
            #expect(seen.contains { $0.hasPrefix("account [") && $0.contains(#""provider_unreachable", "alice"]"#) })
            #expect(seen.contains(#"session [503, "provider_unreachable"]"#), "\(run)")
            let seconds = seen.first { $0.hasPrefix("seconds ") }.flatMap { Int($0.dropFirst("seconds ".count)) }
            #expect(seconds.map { $0 < 20 } == true, "\(run)")
            #expect(seen.contains("requests 1"), "\(run)")
            #expect(seen.contains("session-again [200, true]"), "\(run)")
            #expect(seen.contains(#"account-again ["authenticated", null, "alice"]"#), "\(run)")
        }
    }
}
