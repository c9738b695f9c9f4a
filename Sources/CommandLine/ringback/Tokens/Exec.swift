import ArgumentParser
import CLinux
import Confinement
import Glibc
import RingbackBase
import RingbackClient
import Terminal

struct Exec: AccountNaming {
    static let configuration = CommandConfiguration(
        abstract: "Run a command with an account's access token.",
        discussion: """
            The token is on a file descriptor that only the command has. RINGBACK_TOKEN_FD is its number, and reading \
            it gives the token without a newline: TOKEN=$(cat <&"$RINGBACK_TOKEN_FD"). With --env the token is in \
            that variable instead, which your other programs can read while the command runs.

            With --relay the command gets no token, but an address in a variable of your choice: what it sends there \
            reaches the URL with the account's credentials, as the table of origins says (ringback origin add).

            The command replaces the ringback process: signals go to it, and its exit status is the result. Without a \
            token it is not started, and the exit status says why; 126: it cannot be started; 127: it was not found.
            """)

    @Argument(help: "The account.", completion: Completions.accounts) var account: String
    @Option(help: .value("name", "The variable for the token.")) var env: String?

    @Option(help: .value("n", "The descriptor's number: 0, or 3 and more; otherwise the first free one."))
    var fd: Int32?

    @Option(
        help: .value("var=url", "Give the command an address in place of this URL, and no token; may be repeated."))
    var relay: [String] = []

    @OptionGroup var choice: SessionOptions
    @Flag(help: "Sign in first if necessary.") var signIn = false
    @OptionGroup var daemon: DaemonOptions

    @Argument(parsing: .postTerminator, help: .value("cmd", "After --: the command."), completion: Completions.command)
    var command: [String] = []

    func validate() throws {
        try require(
            command.first?.isEmpty == false, "Name the command after --: \(shown: "ringback exec \(account) -- CMD").")
        try require(
            env?.isVariableName ?? true,
            "--env must be a variable's name: letters, digits and _, not a digit first.")
        try require(
            fd.map { $0 == 0 || (3...1_023).contains($0) } ?? true,
            "--fd must be 0, or 3 to 1023: 1 and 2 are the command's output.")
        try require(
            relay.isEmpty || (env == nil && fd == nil && choice.isEmpty),
            "--relay gives no token: what is sent is chosen by the origin (ringback origin add), not by other options.")
    }

    func run() throws {
        if relay.isEmpty { try giveToken() } else { try giveAddresses() }
        // Reached only if the command cannot be started.
        let failure = Replacement.run(command)
        failure.show()
        throw ExitCode(failure.status)
    }

    private func giveAddresses() throws(RingbackError) {
        var calls = try daemon.calls()
        calls.application = "ringback exec"
        var listeners: [RelayProcess.Listener] = []
        for address in try RelayedAddress.all(relay) {
            let found = try address.check(calls, account: account, signsIn: signIn)
            var port: UInt16 = 0
            let listener = unsafe clinux_listen_at_loopback(&port)
            guard listener >= 0, unsafe setenv(address.variable, address.address(at: port), 1) == 0 else {
                throw RingbackError(.systemError, "Ringback cannot listen at 127.0.0.1.")
            }
            listeners.append(
                .init(address: address, account: found, descriptor: listener, port: port, isShared: true))
        }
        // A proxy would get the requests in plain text.
        for (name, value) in ProxyExceptions.adding("127.0.0.1", to: SocketPlace.variable) {
            unsafe setenv(name, value, 1)
        }
        unsafe unsetenv(ExecToken.descriptorVariable)
        try RelayProcess(listeners, calls, application: "ringback exec").wait()
    }

    private func giveToken() throws {
        var options = TokenOptions()
        options.request = choice.request(account)
        options.socket = daemon.socket
        options.signsIn = signIn
        let answer = try TokenVerb.answer(options)
        try BoundToken.refuse(answer)
        guard let token = answer["access_token"]?.string else {
            throw RingbackError(.invalidProviderResponse, "The daemon's response has no access token.")
        }
        try ExecToken(variable: env, descriptor: fd).put(token)
    }
}

struct Alias: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the shell function that runs a program with an account's token in a variable.",
        discussion: """
            For gh, glab and other programs that take a token from a variable. The function runs the program through \
            ringback exec, so that each start gets a current token.

            sh, bash, zsh: eval "$(ringback alias gh hub GH_TOKEN)"
            fish:          ringback alias gh hub GH_TOKEN --shell fish | source
            """)

    @Argument(help: .value("program", "The program, and the function's name.")) var program: String
    @Argument(help: "The account.", completion: Completions.accounts) var account: String
    @Argument(help: .value("variable", "The variable in which the program looks for its token.")) var variable: String
    @Option(help: .value("name", "The shell: sh, bash, zsh, fish or csh.")) var shell = Shell.sh

    func validate() throws {
        let isName = program.utf8.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
        try require(
            isName && program.utf8.first?.isLetterOrDigit == true,
            "The program is named as in PATH: letters, digits, “.”, “_” and “-”.")
        try require(RequestTarget.isAccountName(account), AccountAdd.nameRule)
        try require(
            variable.isVariableName,
            "The variable's name has letters, digits and _, not a digit first, as GH_TOKEN.")
    }

    func run() {
        let start: ShownCommand = "ringback exec \(account) --env \(variable) -- \(program)"
        let text =
            switch shell {
            case .sh, .bash, .zsh: "\(program)() { \(shown: start) \"$@\"; }"
            case .fish: "function \(program); \(shown: start) $argv; end"
            case .csh: "alias \(program) '\(shown: start) \\!*';"
            }
        Output.line(text)
    }
}

/// A command finds its token on a descriptor, or in a variable that the user named: never in its arguments, and never
/// in a file with a name.
struct ExecToken {
    /// Names the descriptor's number, never the token.
    static let descriptorVariable = "RINGBACK_TOKEN_FD"

    var variable: String?
    var descriptor: Int32?

    /// To be called right before the program is replaced.
    func put(_ token: String) throws(RingbackError) {
        // The variable that an outer `ringback exec` set is not for this command.
        unsafe unsetenv(ExecToken.descriptorVariable)
        if let variable {
            guard unsafe setenv(variable, token, 1) == 0 else { throw ExecToken.failure("the variable \(variable)") }
            if descriptor == nil { return }
        }
        let number = try open(token)
        guard unsafe setenv(ExecToken.descriptorVariable, "\(number)", 1) == 0 else {
            throw ExecToken.failure("the variable \(ExecToken.descriptorVariable)")
        }
    }

    /// The descriptor stays open when the program is replaced. Everything else that is open here is closed then.
    private func open(_ token: String) throws(RingbackError) -> Int32 {
        let bytes = Array(token.utf8)
        let file = unsafe clinux_memory_file(bytes, bytes.count)
        guard file >= 0 else { throw ExecToken.failure("a file in memory", -file) }
        let number = descriptor.map { dup2(file, $0) } ?? fcntl(file, F_DUPFD, 3)
        guard number >= 0 else { throw ExecToken.failure("descriptor \(descriptor ?? 3)") }
        if number == file {
            // The number that was asked for is the file's own: dup2 would leave close-on-exec set.
            guard fcntl(file, F_SETFD, 0) == 0 else { throw ExecToken.failure("descriptor \(number)") }
        } else {
            close(file)
        }
        return number
    }

    private static func failure(_ what: String, _ code: Int32 = errno) -> RingbackError {
        let reason = unsafe String(cString: strerror(code))
        return RingbackError(.systemError, "The token cannot be passed to the command (\(what)): \(reason).")
    }
}

enum Replacement {
    /// Returns only if the program cannot be started, with the exit status that shells use for that.
    ///
    /// - Parameter place: the program's file; nil if its name is looked for in PATH.
    static func run(_ arguments: [String], at place: String? = nil) -> CommandFailure {
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let program = place ?? arguments.first ?? ""
        unsafe execvp(program, &vector)
        let code = errno
        unsafe vector.forEach { unsafe free($0) }
        return CommandFailure(program: program, code: code)
    }
}
