import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `ringback agent` {
    private static let configuration = """
        [accounts.build]
        issuer = "{sandbox}"
        client_id = "robot"
        client_secret_credential = "robot-secret"
        grant = "client_credentials"

        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        """

    /// No daemon but the agent's, and none of the places that a session has.
    private func play(_ test: (Stage, [String: String]) async throws -> Void) async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["clients": [["id": "robot", "secret": "robot-hush"]]])
            FileTree.makeDirectory("\(stage.directory)/tmp")
            try await test(stage, ["PATH": "\(Programs.directory):/usr/bin:/bin", "TMPDIR": "\(stage.directory)/tmp"])
        }
    }

    private func agent(
        _ stage: Stage, _ environment: [String: String], _ arguments: [String], stdin: String? = nil
    ) throws -> Program {
        try Program(
            "ringback", ["agent", "--config", stage.configuration] + arguments, environment: environment, stdin: stdin)
    }

    private func leftovers(_ stage: Stage) -> [String] { FileTree.names(in: "\(stage.directory)/tmp") }

    @Test func `ringback agent runs a command with its own daemon and leaves nothing`() async throws {
        try await play { stage, environment in
            let script = "ringback status --json && ls -ld \"${RINGBACK_SOCK%/*}\" && ringback config check && exit 7"
            let ended = try await agent(stage, environment, ["--", "sh", "-c", script]).end().expect(7)
            let status = try JSON(parsing: ended.lines.first?.utf8 ?? "".utf8)
            #expect(status["vault"]?["key_source"]?.string == "memory", "\(ended)")
            #expect(ended.lines.contains { $0.hasPrefix("drwx------") }, "\(ended)")
            #expect(ended.lines.contains { $0.hasPrefix("build: oidc") }, "\(ended)")
            #expect(ended.err.isEmpty, "\(ended)")
            #expect(leftovers(stage) == [])
            #expect(FileTree.names(in: stage.state) == [] && FileTree.names(in: "\(stage.directory)/run") == [])
        }
    }

    @Test func `agent --credential-fd gives the secret to the daemon only`() async throws {
        try await play { stage, environment in
            // As in a CI job, whose secrets are variables.
            let script = """
                ringback agent --config \(stage.configuration) --credential-fd robot-secret=3 \
                -- env -u SECRET sh -c 'ringback token build; test -e /proc/$$/fd/3 || echo closed; env' 3<<<"$SECRET"
                """
            let job = environment.merging(["SECRET": "robot-hush"]) { $1 }
            let ended = try await Program("/bin/bash", ["-c", script], environment: job).end().expect(0)
            #expect(ended.out.hasPrefix("at-") && ended.out.contains("\nclosed\n"), "\(ended)")
            #expect(!ended.out.contains("robot-hush"), "\(ended)")
        }
    }

    @Test func `agent ends with the command's status`() async throws {
        try await play { stage, environment in
            // Of no known format, as a program for another processor is: /bin/sh must not get it.
            let other = "\(stage.directory)/other"
            try stage.write("echo run\n", to: other)
            #expect(unsafe chmod(other, 0o700) == 0)
            let expected: [([String], Int32)] = [
                (["true"], 0), (["false"], 1), (["sh", "-c", "kill -TERM $$"], 143), (["/none/at/all"], 127),
                (["/etc"], 126), (["none-in-path"], 127), ([""], 64), ([other], 126),
            ]
            for (command, status) in expected {
                let ended = try await agent(stage, environment, ["--"] + command).end()
                #expect(ended.status == status, "\(command): \(ended)")
                #expect(leftovers(stage) == [])
            }
        }
    }

    @Test func `agent notices its command's end though its caller ignores SIGCHLD`() async throws {
        try await play { stage, environment in
            let script = "trap '' CHLD; exec ringback agent --config \(stage.configuration) -- sh -c 'exit 3'"
            try await Program("/bin/bash", ["-c", script], environment: environment).end().expect(3)
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `agent starts no command with a wrong configuration`() async throws {
        try await play { stage, environment in
            try stage.write("[accounts.x]\nnonsense = 1\n", to: stage.configuration)
            try await agent(stage, environment, ["--", "echo", "ran"]).end().expect(78, out: "", says: "nonsense")
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `agent without a command runs a shell`() async throws {
        try await play { stage, environment in
            var environment = environment
            environment["SHELL"] = "/bin/sh"
            let ended = try await agent(stage, environment, [], stdin: "echo \"at $RINGBACK_SOCK\"; exit 3\n").end()
                .expect(3)
            #expect(ended.out.hasPrefix("at \(stage.directory)/tmp/ringback-agent."), "\(ended)")
        }
    }

    @Test func `agent leaves standard input to the command and no session on disk`() async throws {
        try await play { stage, environment in
            try stage.write("robot-hush\n", to: "\(stage.directory)/secret")
            let piped = try await agent(stage, environment, ["--", "cat"], stdin: "for the command\n").end().expect(
                0, out: "for the command\n")
            #expect(piped.err.isEmpty, "\(piped)")
            let script = """
                exec ringback agent --config \(stage.configuration) --credential-fd robot-secret=3 -- sh -c '
                ringback token build >/dev/null && find "${RINGBACK_SOCK%/*}" -type f' 3<\(stage.directory)/secret
                """
            let files = try await Program("/bin/sh", ["-c", script], environment: environment).end()
            // The lock and the audit log, which hold no secret; no session, no key.
            #expect(files.status == 0 && !files.out.isEmpty, "\(files)")
            #expect(!files.lines.contains { $0.contains("session") || $0.contains("key") }, "\(files)")
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `an agent in an agent has its own daemon`() async throws {
        try await play { stage, environment in
            let script = "ringback status --json; ringback agent -- ringback status --json; ringback status --json"
            let ended = try await agent(stage, environment, ["--", "sh", "-c", script]).end().expect(0)
            #expect(ended.lines.count == 3, "\(ended)")
            let daemons = try ended.lines.map { try JSON(parsing: Array($0.utf8))["pid"]?.integer }
            #expect(daemons[0] == daemons[2] && daemons[0] != daemons[1], "\(ended)")
            // The inner one was told of the same configuration.
            let accounts = try ended.lines.map { try JSON(parsing: Array($0.utf8))["accounts"] }
            #expect(accounts[0] != nil && accounts[0]?["authenticated"] == accounts[1]?["authenticated"], "\(ended)")
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `agent exposes accounts in its own directory only`() async throws {
        try await play { stage, environment in
            var environment = environment
            environment["XDG_RUNTIME_DIR"] = "\(stage.directory)/run"
            let script = """
                ringback expose ci --account work && RINGBACK_SOCK="${RINGBACK_SOCK%/*}/exposed/ci.sock" ringback accounts
                ringback expose app --account work --flatpak org.example.App
                """
            let ended = try await agent(stage, environment, ["--", "sh", "-c", script]).end()
            #expect(ended.status != 0 && ended.lines[0].hasPrefix("\(stage.directory)/tmp/"), "\(ended)")
            #expect(ended.out.contains("work") && ended.err.contains("this daemon is private"), "\(ended)")
            #expect(!ended.err.contains("XDG_RUNTIME_DIR is not set"), "\(ended)")
            #expect(leftovers(stage) == [] && FileTree.names(in: "\(stage.directory)/run") == [])
        }
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP, SIGUSR1])
    func `agent forwards signals to the command`(signal: Int32) async throws {
        try await play { stage, environment in
            let script = """
                import os, signal, sys
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
                    signal.signal(number, lambda number, frame: sys.exit(number))
                print("ready", flush=True)
                while True: signal.pause()
                """
            let program = try agent(stage, environment, ["--", "python3", "-c", script])
            _ = try await program.line("“ready”") { $0 == "ready" }
            program.send(signal)
            let ended = try await program.end()
            #expect(ended.status == signal, "\(ended)")
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `Ctrl-Z stops an agent whose command has not become the program yet`() async throws {
        try await play { stage, environment in
            let place = "\(stage.directory)/program"
            try stage.write("#!/bin/sh\nexit 7\n", to: place)
            #expect(unsafe chmod(place, 0o700) == 0)
            // As long as somebody has the lease, an exec of the file waits (fcntl(2)).
            let file = unsafe open(place, O_RDONLY | O_CLOEXEC)
            let (setSignal, setLease, getLease): (Int32, Int32, Int32) = (10, 1_024, 1_025)
            // A signal that is ignored, in place of SIGIO.
            try #require(fcntl(file, setSignal, SIGURG) == 0 && fcntl(file, setLease, F_WRLCK) == 0)
            let program = try agent(stage, environment, ["--", place])
            try await stage.eventually("the exec") { fcntl(file, getLease) != F_WRLCK }
            kill(-program.pid, SIGTSTP)
            defer { kill(-program.pid, SIGCONT) }
            try await stage.eventually("the stop") {
                FileTree.text(of: "/proc/\(program.pid)/stat")?.contains(") T ") == true
            }
            close(file)
            kill(-program.pid, SIGCONT)
            try await program.end().expect(7)
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `agent reports a daemon that ends before the command`() async throws {
        try await play { stage, environment in
            let script = """
                pid=$(ringback status --json | sed 's/.*"pid":\\([0-9]*\\).*/\\1/')
                kill -KILL "$pid"
                while ringback status >/dev/null 2>&1; do :; done
                ringback status
                """
            try await agent(stage, environment, ["--", "sh", "-c", script]).end().expect(
                2, says: "daemon ended with status 137")
            #expect(leftovers(stage) == [])
        }
    }

    @Test func `a killed agent leaves no daemon and no directory`() async throws {
        try await play { stage, environment in
            let program = try agent(
                stage, environment, ["--", "sh", "-c", "ringback status --json; exec sleep 600"])
            let status = try JSON(parsing: try await program.line().utf8)
            let daemon = try #require(status["pid"]?.integer.map(pid_t.init))
            let children = Processes.descendants(of: program.pid)
            #expect(children.contains(daemon))
            program.send(SIGKILL)
            try await stage.eventuallyGone(daemon)
            // Whoever killed the agent ends the command too; here it is this test.
            // The shell may not have become `sleep` yet.
            for child in children where child != daemon {
                let arguments = Processes.arguments(of: child) ?? ""
                if arguments.hasPrefix("sleep") || arguments.hasPrefix("sh") { kill(child, SIGKILL) }
            }
            #expect(try await program.end().status == 137)
            #expect(leftovers(stage) == [])
        }
    }
}

extension Stage {
    /// Waits until there is no such process. A zombie of nobody's counts as gone: its end is what was waited for.
    func eventuallyGone(_ pid: pid_t) async throws {
        let end = ContinuousClock.now + Bound.usual
        try await onThread {
            while let stat = FileTree.text(of: "/proc/\(pid)/stat"), !stat.contains(") Z ") {
                guard ContinuousClock.now < end else { throw Late(what: "the end of process \(pid)") }
                poll(nil, 0, 5)
            }
        }
    }
}
