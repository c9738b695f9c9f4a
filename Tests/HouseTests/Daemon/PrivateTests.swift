import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `ringbackd --private` {
    private static func own(_ stage: Stage) -> String { "\(stage.directory)/own" }

    /// No place of the person's daemon is known here.
    private func environment(_ stage: Stage) -> [String: String] { ["PATH": "/usr/bin:/bin"] }

    private func ringback(_ stage: Stage, _ arguments: String...) async throws -> Output {
        try await stage.run("ringback", arguments + ["--socket", "\(Self.own(stage))/ringback.sock"])
    }

    @Test func `--private keeps all state in its directory`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let own = Self.own(stage)
            FileTree.makeDirectory(own)
            try stage.write(
                Stage.twoAccounts.replacing("{sandbox}", with: stage.sandbox.origin), to: "\(own)/config.toml")
            for round in 0..<2 {
                let daemon = try Program("ringbackd", ["--private", own], environment: environment(stage))
                _ = try await Connection.first(to: .unix("\(own)/ringback.sock"))
                if round == 0 {
                    let login = try stage.start(
                        "ringback", ["login", "work", "--no-browser", "--socket", "\(own)/ringback.sock"])
                    _ = try await Browser.deliver(Browser.signIn(at: try await login.line()))
                    #expect(try await login.end().status == 0)
                }
                let status = try JSON(parsing: try await ringback(stage, "status", "--json").out.utf8)
                #expect(status["vault"]?["key_source"]?.string == "key-file", "\(status)")
                let token = try await ringback(stage, "token", "work").expect(0)
                #expect(token.out.hasPrefix("at-"), "\(token)")
                daemon.send(SIGTERM)
                #expect(try await daemon.end().status == 0)
                #expect(FileTree.names(in: own) == ["config.toml", "keys", "state"])
                #expect(FileTree.mode(of: own) == 0o700)
            }
            #expect(FileTree.names(in: "\(stage.directory)/home") == [])
            #expect(FileTree.names(in: "\(stage.directory)/state-home") == [])
            #expect(SecretSearch.files(in: "\(own)/state") == [])
        }
    }

    @Test func `--private refuses a directory that is open to others`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let own = Self.own(stage)
            let daemon = try Program("ringbackd", ["--private", own], environment: environment(stage))
            _ = try await Connection.first(to: .unix("\(own)/ringback.sock"))
            #expect(FileTree.mode(of: own) == 0o700)
            daemon.send(SIGTERM)
            #expect(try await daemon.end().status == 0)
            FileTree.setMode(0o755, of: own)
            try await Program("ringbackd", ["--private", own], environment: environment(stage)).end().expect(
                1, says: "chmod 700")
            try await stage.run("ringbackd", ["--private", own, "--socket", "/tmp/x"], status: 64)
        }
    }

    @Test func `a private daemon does not notify the app's service manager`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            var environment = environment(stage)
            environment["NOTIFY_SOCKET"] = stage.notices.path
            let own = Self.own(stage)
            let daemon = try Program("ringbackd", ["--private", own], environment: environment)
            _ = try await Connection.first(to: .unix("\(own)/ringback.sock"))
            daemon.send(SIGTERM)
            #expect(try await daemon.end().status == 0)
            #expect(stage.notices.count == 0)
        }
    }

    @Test func `--exit-with-parent ends the daemon with its parent`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let own = Self.own(stage)
            let path = Programs.path("ringbackd")
            let script = "\"$0\" --private \"$1\" --exit-with-parent & echo $!; wait"
            let parent = try Program("/bin/sh", ["-c", script, path, own], environment: environment(stage))
            let daemon = try #require(pid_t(try await parent.line()))
            _ = try await Connection.first(to: .unix("\(own)/ringback.sock"))
            parent.send(SIGKILL)
            try await stage.eventuallyGone(daemon)
            #expect(!FileTree.names(in: own).contains("ringback.sock"))
            _ = try? await parent.end()
        }
    }

    @Test func `--exit-with-parent ends the daemon if its parent has ended already`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            // Its parent is this process, not the one that it is told of.
            let daemon = try Program(
                "ringbackd", ["--private", Self.own(stage), "--exit-with-parent=1"], environment: environment(stage))
            try await daemon.end().expect(0, says: "has ended")
            for wrong in ["0", "-1", "x", ""] {
                try await stage.run("ringbackd", ["--exit-with-parent=\(wrong)"], status: 64)
            }
        }
    }
}
