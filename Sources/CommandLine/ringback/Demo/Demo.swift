import ArgumentParser
import Glibc
import RingbackClient
import StrictJSON
import Terminal

struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show a whole sign-in, with a private daemon and provider.",
        discussion: """
            Everything is in a private temporary directory and on loopback: no configuration of yours is read, no \
            browser is opened, nothing is left. Exit status 0 only if every step succeeded.
            """)

    @Flag(help: "Leave both running at the end, and print what to try.")
    var keep = false

    func run() throws {
        var setup: DemoSetup?
        do throws(RingbackError) {
            let interruption = try Signals.interruption()
            let made = try DemoSetup(interruption)
            setup = made
            try DemoWalk(setup: made, interruption: interruption).run(keep: keep)
            if keep {
                showWhatToTry(made)
            } else {
                try made.end()
                Output.line("\nEvery step succeeded, and everything was removed again.")
            }
        } catch {
            Failure(error, account: nil).show()
            for line in setup?.lastLogLines ?? [] { Output.note("  " + Sanitizer.line(line, limit: 400)) }
            try? setup?.end()
            throw ExitCode(ExitStatus.of(error))
        }
    }

    private func showWhatToTry(_ setup: DemoSetup) {
        // As the user called it: it may not be in PATH.
        let ringback = ShownCommand(words: [CommandLine.arguments.first ?? "ringback"])
        Output.line(
            """

            Both are still running, and alice is signed in. To try them:
              \(shown: "export RINGBACK_SOCK=\(setup.socket)")
              \(shown: "\(ringback) token demo")
              \(shown: "\(ringback) session demo --json")
              \(shown: "\(ringback) events")
              \(shown: "\(ringback) logout demo && \(ringback) login demo")
              curl --unix-socket "$RINGBACK_SOCK" http://ringback/v1/accounts
            To end it:
              \(shown: "kill \(ShownCommand(words: setup.pids.map(String.init))) && rm -r \(setup.directory)")
            """)
    }
}
