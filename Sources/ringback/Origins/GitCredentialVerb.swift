import Adapters
import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct GitCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "git-credential", abstract: "Give git the token of the account that is configured for its server.",
        discussion: """
            A credential helper: git runs it and writes to its standard input. The configuration's [[origin]] tables say \
            which account's token goes to which server. Also run as git-credential-ringback.
            """)

    @Argument(help: "get, store, erase or capability. Anything else is ignored, as git's protocol says.")
    var action: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let status = GitCredentialRun(socket: daemon.socket).run(action)
        if status != 0 { throw ExitCode(status) }
    }
}

/// One run of git's credential helper: reads git's lines, asks the daemon, and prints the answer.
struct GitCredentialRun {
    let socket: String?

    /// The exit status. git takes what was printed whatever it is.
    func run(_ word: String) -> Int32 {
        guard let action = GitCredential.Action(rawValue: word) else { return 0 }
        guard action != .capability else { return print(GitCredential.capabilities) }
        do throws(AdapterFailure) {
            let input = GitCredentialRun.readInput()
            guard input.count <= GitCredential.maxInput else {
                Output.note("ringback: git's input is too long.")
                return ExitStatus.failed
            }
            let credential = try GitCredential(action, reading: input)
            guard let request = credential.request else { return 0 }
            return try action == .erase ? reject(request) : give(credential, request)
        } catch {
            Output.note("ringback: \(error.reason)")
            return ExitStatus.failed
        }
    }

    private func give(_ credential: GitCredential, _ request: AdapterRequest) throws(AdapterFailure) -> Int32 {
        let found: OriginCredential
        do throws(RingbackError) {
            found = try lookup(request)
        } catch {
            // A server that is not ours: git asks its other helpers, or the user.
            guard error.kind != .notFound else { return 0 }
            Failure(error, account: error.problem?.extensions["account"]?.string).show()
            // Without the daemon nobody knows whether the server is one of ours.
            if error.kind == .noDaemon || error.kind == .policyDenied { return ExitStatus.of(error) }
            return max(print(GitCredential.quit), ExitStatus.of(error))
        }
        if let warning = found.warning { Output.note("ringback: " + Sanitizer.line(warning, limit: 1_000)) }
        guard let secret = found.secret else { return ExitStatus.failed }
        return print(
            try credential.answer(
                AdapterCredential(
                    headers: found.headers, username: found.username, secret: secret,
                    expiresAt: found.expiresAt?.secondsSince1970)))
    }

    /// The daemon's answer. If the account is signed out and a user is there, it waits for a sign-in.
    private func lookup(_ request: AdapterRequest) throws(RingbackError) -> OriginCredential {
        var wanted = OriginRequest(url: request.url)
        wanted.username = request.username
        do throws(RingbackError) {
            return try calls().lookup(wanted)
        } catch {
            guard ExitStatus.of(error) == 3, GitCredentialRun.isInteractive else { throw error }
            Failure(error, account: error.problem?.extensions["account"]?.string).show()
            Output.note("Waiting for the sign-in, two minutes at most. Ctrl-C ends this.")
            wanted.isInteractive = true
            return try calls().lookup(wanted)
        }
    }

    /// Tells the daemon which token was refused. git cannot do anything about a failure.
    private func reject(_ request: AdapterRequest) -> Int32 {
        var rejection = OriginRequest(url: request.url)
        rejection.username = request.username
        rejection.rejected = request.rejected
        do throws(RingbackError) {
            let answer = try calls().lookup(rejection)
            if let warning = answer.warning { Output.note("ringback: " + Sanitizer.line(warning, limit: 1_000)) }
            return 0
        } catch {
            return error.kind == .notFound ? 0 : ExitStatus.of(error)
        }
    }

    private func calls() throws(RingbackError) -> BrokerCalls {
        var calls = try Daemon.calls(socket: socket)
        calls.application = "git"
        return calls
    }

    private func print(_ bytes: [UInt8]) -> Int32 {
        Console.write(String(decoding: bytes, as: UTF8.self), to: .output) ? 0 : ExitStatus.failed
    }

    /// True if a user can be expected to sign in now: there is a terminal, and git was not told to ask for nothing.
    private static var isInteractive: Bool {
        guard Console.Stream.errors.isTerminal, SocketPlace.variable("GIT_TERMINAL_PROMPT") != "0" else { return false }
        let setting = Tool.run(["git", "config", "--get", "credential.interactive"])?.line?.lowercased()
        return !["false", "no", "off", "0", "never"].contains(setting ?? "true")
    }

    /// Everything on standard input, one byte more than is allowed at most.
    private static func readInput() -> [UInt8] {
        var input: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while input.count <= GitCredential.maxInput {
            let count = unsafe read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            input += buffer[..<count]
        }
        return input
    }
}
