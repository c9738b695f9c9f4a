import CLinux
import Glibc
import Testing

@Suite(.enabled(if: NetworkNamespace.isPossible, NetworkNamespace.reason))
struct `A network that goes and comes back` {
    /// The script lives in the namespace, beside the sandbox and the daemon; it tells what it saw, and is judged here.
    @Test func `PR-20: a network that returns is used before the back-off ends, and no session is lost`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let place = "\(stage.directory)/away"
            FileTree.makeDirectory(place)
            let run = try await NetworkNamespace.run("network_return.py", Programs.directory, place, on: stage)
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

@Suite struct `The kernel's messages about the network` {
    @Test func `are none while the network does not change`() throws {
        let descriptor = clinux_open_network_news()
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        #expect(clinux_read_network_news(descriptor) == 0)
    }
}
