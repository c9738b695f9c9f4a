// The example app is built as a reader would build it, as a package of its own, and run.

import Glibc
import Testing

@Suite struct `The example app` {
    @Test func `builds by itself, signs in and tells of it`() async throws {
        let app = try await build("ListenToSessions")
        try await Stage.playReader { stage in
            let (added, name) = (stage.readersEnvironment, "work")
            let add = ["account", "add", name, "--issuer", stage.sandbox.origin, "--client-id", "ringback"]
            #expect(try await stage.run("ringback", add, environment: added).status == 0)
            // Line by line: its output goes to a pipe here, and would be held back.
            let program = try stage.start("/usr/bin/stdbuf", ["-oL", app], environment: added)
            let line = try await program.line("the sign-in") { $0.hasPrefix("signed_in") }
            #expect(line == "signed_in alice@example.org")
            #expect(try await stage.run("ringback", ["refresh", name, "--force"], environment: added).status == 0)
            _ = try await program.line("the refresh") { $0 == "token_refreshed alice@example.org" }
        }
    }

    /// Builds an example below `.build`; gives the executable's path. The first build takes half a minute.
    private func build(_ name: String) async throws -> String {
        let scratch = "\(Document.root)/.build/examples"
        let arguments = [
            Programs.variable("SWIFT") ?? "swift", "build", "--package-path", "\(Document.root)/Examples/\(name)",
            "--scratch-path", scratch,
        ]
        let environment = ["PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "SSL_CERT_FILE", "https_proxy"].reduce(into: [:])
        {
            $0[$1] = Programs.variable($1)
        }
        let ended = try await Program("/usr/bin/env", arguments, environment: environment).end(
            within: Bound.seconds(300))
        try #require(ended.status == 0, "\(ended)")
        return "\(scratch)/debug/\(name)"
    }
}
