import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct Refresh: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Renew an account's tokens now.",
        discussion: "Without ACCOUNT it is the only account, else the default account (see ringback use).")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String?

    @Flag(help: "Refresh even if a refresh has just ended.")
    var force = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let account = try AccountChoice.name(account, for: "refresh", daemon)
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().call(
                .refresh, [account], body: force ? ["force": true] : [:])
            guard !json.isWanted else { return Output.json(answer) }
            let validity = TimeText.phrase(until: answer["expires_at"]?.integer, now: TimeText.now())
            Output.line("Refreshed \(account), token \(validity)")
        }
    }
}
