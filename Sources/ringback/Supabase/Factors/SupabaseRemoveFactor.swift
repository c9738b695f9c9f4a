import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseRemoveFactor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove-factor", abstract: "Remove a second factor.",
        discussion: "A verified one can be removed by a session of the second level alone.")

    @Argument(help: "The account.")
    var account: String

    @Argument(help: ArgumentHelp("The factor, as “supabase factors” shows it.", valueName: "id"))
    var factor: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().project(.removeFactor, account, factor)
            } catch {
                throw IdentifierHint.explained(error, see: "ringback supabase factors \(account)")
            }
            if json.isWanted { Output.json(answer) } else { Output.line("Removed \(Sanitizer.line(factor))") }
        }
    }
}
