import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct VaultShare: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Give the hosts' key to the host that has shown a code.",
        discussion: """
            The code is what ringback vault join has shown on that host. It is asked for, or is a line of standard input: \
            other users can read the arguments of a command. Type what you see there yourself: whoever gets the key can \
            read every session of the vault. A code that has failed is not accepted again.
            """)

    @Argument(help: .hidden)
    var code: [String] = []

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard code.isEmpty else {
            throw ValidationError(
                "The code is no argument: other users can read the arguments of a command. Run ringback vault share, and "
                    + "type the code when it is asked for.")
        }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            let text = try SecretInput(interruption: interruption).read("code", from: nil)
            let answer: JSON
            do throws(RingbackError) {
                answer = try calls.call(.shareVault, body: ["code": .string(text)])
            } catch {
                guard error.kind == .notFound else { throw error }
                throw SignInAdvice.adding(
                    "See that the code is typed as it is shown there. To show it again, run there: ringback vault join. "
                        + "If it was right, it is not accepted again: remove that host with ringback vault remove-host, "
                        + "and invite it anew.",
                    to: error)
            }
            if json.isWanted {
                Output.json(answer)
            } else {
                Output.line("\(Sanitizer.line(answer["host"]?.string ?? "The host")) has got the key.")
            }
        }
    }
}
