import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct VaultShare: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Give the hosts' key to the host that has shown a code.",
        discussion: """
            CODE is what ringback vault join has shown on that host. Type what you see there yourself: whoever gets the key \
            can read every session of the vault. Without CODE it is asked for, or is a line of standard input.
            """)

    @Argument(help: "The code: 20 letters and digits, in either case, with or without hyphens.")
    var code: [String] = []

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            let text =
                code.isEmpty
                ? try SecretInput(interruption: interruption).read("code", from: nil) : code.joined(separator: " ")
            let answer: JSON
            do throws(RingbackError) {
                answer = try calls.call(.shareVault, body: ["code": .string(text)])
            } catch {
                guard error.kind == .notFound else { throw error }
                throw SignInAdvice.adding(
                    "See that the code is typed as it is shown there. To show it again, run there: ringback vault join",
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
