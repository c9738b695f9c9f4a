import Adapters
import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient

struct KeyringVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring", abstract: "Give pip and uv the token for a package index.",
        discussion: """
            Takes the place of the program keyring, which pip and uv run: get SERVICE USERNAME. The configuration's \
            [[origin]] tables say which account's token goes to which index. Everything else is passed to the next keyring \
            in PATH. Also run as keyring, by the link in the directory lib/ringback.
            """)

    @Argument(parsing: .allUnrecognized, help: "The arguments of keyring.")
    var arguments: [String] = []

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let status = KeyringRun(socket: daemon.socket).run(arguments)
        if status != 0 { throw ExitCode(status) }
    }
}

/// One run in the place of `keyring`.
struct KeyringRun {
    let socket: String?

    /// The exit status.
    func run(_ arguments: [String]) -> Int32 {
        guard let asked = KeyringCommand(arguments) else { return KeyringRun.passOn(arguments) }
        let calls = AdapterCalls(socket: socket, tool: "keyring")
        return AdapterCalls.status { () throws(AdapterFailure) in
            let found: AdapterCredential?
            do throws(RingbackError) {
                found = try calls.credential(asked.request)
            } catch {
                AdapterCalls.show(error)
                // pip asks for the host of a plain http index too. Another keyring may have a password for it.
                guard error.kind == .policyDenied, asked.request.settings.withoutScheme else {
                    return ExitStatus.of(error)
                }
                return KeyringRun.passOn(arguments)
            }
            guard let found else { return KeyringRun.passOn(arguments) }
            return AdapterCalls.print(try asked.answer(found))
        }
    }

    /// Becomes the next program of this name in PATH that is not this one.
    ///
    /// - Returns: an exit status, only if there is no such program or it cannot be run. If there is none, it is the
    ///   status with which `keyring` ends if it finds nothing.
    private static func passOn(_ arguments: [String]) -> Int32 {
        let folders = (SocketPlace.variable("PATH") ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
        let next = folders.map { "\($0)/keyring" }.first { path in
            unsafe access(path, X_OK) == 0 && !Programs.isSelf(path)
        }
        guard let next else {
            // pip and uv ask for many services, and show what is written to standard error.
            if !arguments.contains("get") {
                AdapterCalls.note("There is no other keyring in PATH, and this one has nothing but “get”.")
            }
            return ExitStatus.failed
        }
        let failure = Replacement.run([next] + arguments)
        AdapterCalls.note("\(next) cannot be started.")
        return failure.status
    }
}
