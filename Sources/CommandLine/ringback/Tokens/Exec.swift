import ArgumentParser
import Glibc
import RingbackClient
import StrictJSON
import Terminal

struct Exec: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command with an account's access token.",
        discussion: """
            The token is on a file descriptor that only the command has. RINGBACK_TOKEN_FD is its number, and reading \
            it gives the token without a newline: TOKEN=$(cat <&"$RINGBACK_TOKEN_FD"). With --env the token is in \
            that variable instead, which your other programs can read while the command runs.

            The command replaces the ringback process: signals go to it, and its exit status is the result. Without a \
            token it is not started, and the exit status says why; 126: it cannot be started; 127: it was not found.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(name: .customLong("env"), help: ArgumentHelp("The variable for the token.", valueName: "name"))
    var variable: String?

    @Option(
        name: .customLong("fd"),
        help: ArgumentHelp("The descriptor's number: 0, or 3 and more; otherwise the first free one.", valueName: "n"))
    var descriptor: Int32?

    @OptionGroup var choice: SessionOptions

    @Flag(help: "Sign in first if necessary.")
    var signIn = false

    @OptionGroup var daemon: DaemonOptions

    @Argument(
        parsing: .postTerminator, help: ArgumentHelp("After --: the command.", valueName: "cmd"),
        completion: Completions.command)
    var command: [String] = []

    func validate() throws {
        guard let program = command.first, !program.isEmpty else {
            throw ValidationError("Name the command after --: \(shown: "ringback exec \(account) -- CMD").")
        }
        if let variable, !ExecToken.isVariable(variable) {
            throw ValidationError("--env must be a variable's name: letters, digits and _, not a digit first.")
        }
        if let descriptor, descriptor != 0, !(3...1_023).contains(descriptor) {
            throw ValidationError("--fd must be 0, or 3 to 1023: 1 and 2 are the command's output.")
        }
    }

    func run() throws {
        var options = TokenOptions()
        options.request = choice.request(account)
        options.socket = daemon.socket
        options.signsIn = signIn
        try present(account: account) { () throws(RingbackError) in
            guard let token = try TokenVerb.answer(options)["access_token"]?.string else {
                throw RingbackError(.invalidProviderResponse, "The daemon's response has no access token.")
            }
            let places = ExecToken(variable: variable, descriptor: descriptor)
            try places.put(token)
        }
        // Reached only if the command cannot be started.
        let failure = Replacement.run(command)
        failure.show()
        throw ExitCode(failure.status)
    }
}
