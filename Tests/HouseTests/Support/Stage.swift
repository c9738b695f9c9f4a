// A house of its own for each test: a private directory, a sandbox, a daemon, and a clean environment. What was begun
// is ended: processes first, by their own pids, then the directory.

import Glibc
import RingbackBase
import Synchronization
import TestSupport
import Testing

final class Stage: Sendable {
    /// Mode 0700, and short: a socket's path has 107 bytes at most.
    let directory: String
    let sandbox: SandboxServer
    let notices: NoticeSocket
    private let current = Mutex<Program?>(nil)
    private let others = Mutex<[Program]>([])

    /// One account by discovery, one for another tenant of the same server.
    static let twoAccounts = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        [accounts.home]
        issuer = "{sandbox}/tenant-a"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        """

    /// Two debug builds of servers a stage: more of them at a time would only wait for each other.
    private static let gate = Gate(3)

    /// Sets a stage, plays, and clears it away.
    ///
    /// - Parameters:
    ///   - configuration: TOML, see ``write(configuration:)``.
    ///   - sandboxArguments: added to `ringback-sandbox --port 0`.
    ///   - startsDaemon: false leaves that to the test.
    static func play(
        _ configuration: String = twoAccounts, sandboxArguments: [String] = [], startsDaemon: Bool = true,
        _ test: (Stage) async throws -> Void
    ) async throws {
        await gate.enter()
        do {
            let stage = try await Stage(sandboxArguments: sandboxArguments)
            do {
                try stage.write(configuration: configuration)
                if startsDaemon { try await stage.startDaemon() }
                try await test(stage)
            } catch {
                Issue.record("the daemon said:\n\(stage.daemon?.errors.value.text ?? "nothing")")
                await stage.clear()
                throw error
            }
            await stage.clear()
        } catch {
            await gate.leave()
            throw error
        }
        await gate.leave()
    }

    private init(sandboxArguments: [String]) async throws {
        let stated = Programs.variable("TMPDIR") ?? ""
        let parent = stated.hasPrefix("/") && stated.utf8.count < 40 ? stated : "/tmp"
        var template = Array("\(parent)/rb-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", code: errno) }
        let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.directory = directory
        for name in ["config", "run", "home", "state-home", "bin"] { unsafe mkdir("\(directory)/\(name)", 0o700) }
        notices = try NoticeSocket(path: "\(directory)/notify")
        do {
            sandbox = try await SandboxServer(sandboxArguments, environment: Stage.environment(in: directory))
        } catch {
            notices.close()
            FileTree.remove(directory)
            throw error
        }
    }

    var socket: String { "\(directory)/run/ringback.sock" }
    var state: String { "\(directory)/state" }
    var configuration: String { "\(directory)/config/config.toml" }
    var dropIns: String { "\(directory)/config/accounts.d" }

    /// What every program of the stage gets; nothing of the caller's.
    var environment: [String: String] { Stage.environment(in: directory) }

    private static func environment(in directory: String) -> [String: String] {
        [
            "PATH": "\(directory)/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "\(directory)/home",
            "XDG_CONFIG_HOME": "\(directory)/home/.config", "XDG_STATE_HOME": "\(directory)/state-home",
            "XDG_RUNTIME_DIR": "\(directory)/run", "RINGBACK_SOCK": "\(directory)/run/ringback.sock",
            "RINGBACK_CONFIG": "\(directory)/config/config.toml",
        ]
    }

    /// Writes the configuration: `{sandbox}` stands for the sandbox's issuer, `{stage}` for the directory.
    func write(configuration text: String) throws {
        try write(
            text.replacing("{sandbox}", with: sandbox.origin).replacing("{stage}", with: directory),
            to: configuration)
    }

    /// Writes a file whose mode is exactly `mode`, whatever the umask is.
    func write(_ text: String, to path: String, mode: mode_t = 0o600) throws {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard file >= 0 else { throw SystemError(call: "open \(path)", code: errno) }
        defer { close(file) }
        guard fchmod(file, mode) == 0 else { throw SystemError(call: "fchmod \(path)", code: errno) }
        let bytes = Array(text.utf8)
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw SystemError(call: "write \(path)", code: errno)
        }
    }

    /// The daemon that runs now, or the last one.
    var daemon: Program? { current.withLock { $0 } }

    /// Starts the daemon and waits until it says that it is ready, by the protocol of sd_notify(3).
    @discardableResult
    func startDaemon(
        _ arguments: [String] = [], of daemon: String = "ringbackd", environment added: [String: String] = [:]
    ) async throws -> Program {
        let standing = ["--config", configuration, "--socket", socket, "--state", state]
        var environment = environment.merging(added) { _, new in new }
        environment["NOTIFY_SOCKET"] = notices.path
        let readiness = notices.count
        let program = try Program(daemon, standing + arguments, environment: environment)
        current.withLock { $0 = program }
        do {
            try await notices.wait(for: "READY=1", after: readiness)
        } catch {
            throw Late(what: "readiness of ringbackd: \(program.errors.value.text)")
        }
        return program
    }

    @discardableResult
    func stopDaemon() async throws -> Output {
        guard let daemon else { throw Late(what: "a daemon to stop") }
        daemon.send(SIGTERM)
        return try await daemon.end()
    }

    func startSandbox(_ arguments: [String] = []) async throws -> SandboxServer {
        let server = try await SandboxServer(arguments, environment: environment)
        others.withLock { $0.append(server.program) }
        return server
    }

    /// Starts a program and leaves it running; it is ended with the stage.
    func start(
        _ name: String, _ arguments: [String], stdin: String? = nil, environment added: [String: String] = [:]
    ) throws -> Program {
        let environment = environment.merging(added) { _, new in new }
        let program = try Program(name, arguments, environment: environment, stdin: stdin)
        others.withLock { $0.append(program) }
        return program
    }

    /// Runs a program to its end, and checks what is named of the result: the exit status, the whole of standard output,
    /// and what standard output (`prints`) and standard error (`says`) contain.
    @discardableResult
    func run(
        _ name: String, _ arguments: [String], stdin: String? = nil, environment added: [String: String] = [:],
        within bound: Duration = Bound.usual, status: Int32? = nil, out: String? = nil, prints: String...,
        says: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Output {
        let output = try await start(name, arguments, stdin: stdin, environment: added).end(within: bound)
        output.check(arguments, status, out: out, prints: prints, says: says, at: sourceLocation)
        return output
    }

    /// Runs `ringback`, and checks the result as ``run`` does.
    @discardableResult
    func ringback(
        _ arguments: String..., stdin: String? = nil, environment added: [String: String] = [:],
        within bound: Duration = Bound.usual, status: Int32? = nil, out: String? = nil, prints: String...,
        says: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Output {
        let output = try await run("ringback", arguments, stdin: stdin, environment: added, within: bound)
        output.check(arguments, status, out: out, prints: prints, says: says, at: sourceLocation)
        return output
    }

    private func clear() async {
        for program in others.withLock({ $0 }) where program.endedStatus == nil { await program.stop() }
        if let daemon, daemon.endedStatus == nil {
            if await !daemon.stop() { Issue.record("ringbackd had to be killed:\n\(daemon.errors.value.text)") }
            #expect(daemon.endedStatus == 0, "ringbackd did not end cleanly:\n\(daemon.errors.value.text)")
        }
        if await !sandbox.stop() { Issue.record("ringback-sandbox had to be killed") }
        notices.close()
        // No token of any test rests in clear where the daemon keeps things, nor in what it said.
        #expect(SecretSearch.files(in: state) == [])
        #expect(SecretSearch.tokens(in: Array(daemon?.errors.value.text.utf8 ?? "".utf8)) == [])
        FileTree.remove(directory)
    }
}
