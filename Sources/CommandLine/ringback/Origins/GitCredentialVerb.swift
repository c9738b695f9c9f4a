import Adapters
import ArgumentParser
import RingbackClient
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
        try ExitStatus.end(with: GitCredentialRun(socket: daemon.socket).run(action))
    }
}

/// One run of git's credential helper: reads git's lines, asks the daemon, and prints the answer.
struct GitCredentialRun {
    private let calls: AdapterCalls

    init(socket: String?) { calls = AdapterCalls(socket: socket, tool: "git") }

    /// The exit status. git takes what was printed whatever it is.
    func run(_ word: String) -> Int32 {
        guard let action = GitCredential.Action(rawValue: word) else { return 0 }
        guard action != .capability else { return AdapterCalls.print(GitCredential.capabilities) }
        return AdapterCalls.status { () throws(RingbackError) in
            let input = AdapterCalls.readInput(atMost: GitCredential.maxInput)
            guard input.count <= GitCredential.maxInput else {
                throw RingbackError(.badResponse, "git's input is too long.")
            }
            let credential = try AdapterCalls.translated(try GitCredential(action, reading: input))
            guard let request = credential.request else { return 0 }
            return try action == .erase ? calls.reject(request) : give(credential, request)
        }
    }

    private func give(_ credential: GitCredential, _ request: AdapterRequest) throws(RingbackError) -> Int32 {
        let found: AdapterCredential
        do throws(RingbackError) {
            found = try calls.lookup(request) { GitCredentialRun.isInteractive }
        } catch {
            // A server that is not ours: git asks its other helpers, or the user.
            guard error.kind != .notFound else { return 0 }
            AdapterCalls.show(error)
            // Without the daemon it is unknown whether the server is a configured origin.
            if error.kind == .noDaemon || error.kind == .policyDenied { return ExitStatus.of(error) }
            return max(AdapterCalls.print(GitCredential.quit), ExitStatus.of(error))
        }
        return AdapterCalls.print(try AdapterCalls.translated(try credential.answer(found)))
    }

    /// True if a user can be expected to sign in now: there is a terminal, and git was not told to ask for nothing.
    private static var isInteractive: Bool {
        guard Console.Stream.errors.isTerminal, SocketPlace.variable("GIT_TERMINAL_PROMPT") != "0" else { return false }
        let setting = Tool.run(["git", "config", "--get", "credential.interactive"])?.line?.lowercased()
        return !["false", "no", "off", "0", "never"].contains(setting ?? "true")
    }
}
