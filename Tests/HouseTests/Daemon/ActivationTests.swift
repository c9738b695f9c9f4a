import Glibc
import RingbackBase
import TestSupport
import Testing

/// A program of systemd that opens a socket and starts a service with it when somebody comes.
private let activator = "/usr/bin/systemd-socket-activate"
private let hasActivator = unsafe access(activator, X_OK) == 0

@Suite struct `A socket from systemd` {
    /// Starts the activator, which becomes the daemon with the first connection. The daemon's own pid stays.
    private func activate(
        _ stage: Stage, at address: String, options: [String] = [], environment: [String: String] = [:]
    ) async throws -> Program {
        var variables = stage.environment.merging(["NOTIFY_SOCKET": stage.notices.path]) { first, _ in first }
        variables.merge(environment) { _, new in new }
        let passed = variables.flatMap { ["--setenv", "\($0.key)=\($0.value)"] }
        let program = try stage.start(
            activator,
            ["--listen", address] + options + passed
                + [Programs.path("ringbackd"), "--config", stage.configuration, "--state", stage.state])
        _ = try await program.errorLine("the activator's readiness") { $0.hasPrefix("Listening on ") }
        return program
    }

    @Test(.enabled(if: hasActivator, "needs \(activator), of the package systemd"))
    func `a socket of systemd is served and left open`() async throws {
        // What the daemon starts must find neither the socket nor the word of it.
        let configuration = """
            [accounts.work]
            issuer = "{sandbox}"
            client_id = "ringback-demo"
            client_secret_command = ["{stage}/bin/secret"]

            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": "s"]]])
            let seen = "\(stage.directory)/seen"
            try stage.write(
                "#!/bin/sh\n{ env; readlink /proc/self/fd/*; } >\(seen) 2>/dev/null\necho s\n",
                to: "\(stage.directory)/bin/secret", mode: 0o700)
            // Another place is configured: the passed socket goes before it.
            let daemon = try await activate(
                stage, at: stage.socket, environment: ["RINGBACK_SOCK": "\(stage.directory)/run/other.sock"])
            let status = try await stage.api("GET", "/v1/status", status: 200)
            #expect(status["pid"]?.integer == Int(daemon.pid), "\(status)")
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock"])
            try await stage.signIn()
            #expect(try await stage.token() != nil)
            let inherited = try #require(FileTree.text(of: seen))
            #expect(!inherited.contains("LISTEN_") && !inherited.contains("socket:"), "\(inherited)")
            daemon.send(SIGTERM)
            #expect(try await daemon.end().status == 0)
            // It is systemd's.
            #expect(FileTree.names(in: "\(stage.directory)/run") == ["ringback.sock"])
            #expect(throws: SystemError.self) { try stage.connect() }
        }
    }

    @Test(.enabled(if: hasActivator, "needs \(activator), of the package systemd"))
    func `an activation socket outside the user's directory is refused`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let name = String(stage.directory.dropFirst())
            let abstract = try await activate(stage, at: "@\(name)")
            let first = try await stage.run(
                "/usr/bin/curl", ["-sS", "--abstract-unix-socket", name, "http://ringback/v1/status"])
            #expect(first.status != 0 && first.out.isEmpty, "\(first)")
            try await abstract.end().expect(1, says: "has no file name")

            FileTree.makeDirectory("\(stage.directory)/open")
            FileTree.setMode(0o755, of: "\(stage.directory)/open")
            let open = try await activate(stage, at: "\(stage.directory)/open/ringback.sock")
            _ = try? Connection(to: .unix("\(stage.directory)/open/ringback.sock"))
            try await open.end().expect(1, says: "chmod 700 \(stage.directory)/open")
        }
    }

    @Test(.enabled(if: hasActivator, "needs \(activator), of the package systemd"))
    func `a TCP activation socket is refused`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            // A port that was free a moment ago.
            let port = try Trap().port
            let daemon = try await activate(stage, at: "127.0.0.1:\(port)")
            let answer = try await stage.run("/usr/bin/curl", ["-sS", "http://127.0.0.1:\(port)/v1/status"])
            #expect(answer.status != 0 && answer.out.isEmpty, "\(answer)")
            try await daemon.end().expect(1, says: "not a listening Unix stream socket")
        }
    }

    @Test(arguments: [
        ["LISTEN_PID": "1", "LISTEN_FDS": "1"], ["LISTEN_PID": "nonsense", "LISTEN_FDS": "1"], ["LISTEN_FDS": "1"],
        ["LISTEN_PID": "", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "x"],
    ]) func `activation variables of another process are ignored`(variables: [String: String]) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let environment = variables.merging(["NOTIFY_SOCKET": stage.notices.path]) { first, _ in first }
            let daemon = try stage.start("ringbackd", ["--state", stage.state], environment: environment)
            try await stage.notices.wait(for: "READY=1", after: 0)
            #expect(try await stage.api("GET", "/v1/status").status == 200)
            daemon.send(SIGTERM)
            #expect(try await daemon.end().status == 0)
            #expect(FileTree.names(in: "\(stage.directory)/run") == [])
        }
    }
}
