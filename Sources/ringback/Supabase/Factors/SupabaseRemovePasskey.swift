import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseRemovePasskey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove-passkey", abstract: "Remove a passkey: nobody signs in by it any more.",
        discussion: "If the user has a second factor, this needs a session of the second level.")

    @Argument(help: "The account.")
    var account: String

    @Argument(help: ArgumentHelp("The passkey, as “supabase passkeys” shows it.", valueName: "id"))
    var passkey: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().removePasskey(account, passkey)
            } catch {
                throw IdentifierHint.explained(error, see: "ringback supabase passkeys \(account)")
            }
            if json.isWanted { Output.json(answer) } else { Output.line("Removed \(Sanitizer.line(passkey))") }
        }
    }
}
