import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct VaultRemoveHost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove-host", abstract: "Remove another host from those that share the vault.",
        discussion: """
            Its connections to the database end, and its role is dropped. Then every session is refreshed once, so that \
            what it had read is stale. Exit status 1: not every session could be refreshed.
            """)

    @Argument(help: "The host's name or role.")
    var host: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var failed: [String] = []
        try present { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().call(.removeVaultHost, [host], timeout: .seconds(600))
            } catch {
                throw error.kind == .notFound ? SignInAdvice.adding("See: ringback vault hosts", to: error) : error
            }
            failed = (answer["failed"]?.array ?? []).compactMap(\.string)
            guard !json.isWanted else { return Output.json(answer) }
            let count = answer["refreshed"]?.array?.count ?? 0
            Output.line(
                "\(Sanitizer.line(answer["host"]?.string ?? host)) was removed. Sessions refreshed: \(count).")
            for name in failed where RequestTarget.isAccountName(name) {
                Output.note(
                    "\(name) was not refreshed: what that host had read may still be good. It is tried again by itself, or "
                        + "run: \(shown: "ringback refresh \(name) --force")")
            }
            VaultHosts.showLeft(answer)
        }
        if !failed.isEmpty { throw ExitCode(ExitStatus.failed) }
    }
}
