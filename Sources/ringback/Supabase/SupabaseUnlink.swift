import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON

struct SupabaseUnlink: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlink", abstract: "Take a provider's account from the user.",
        discussion: "The last one stays: the project refuses to leave a user without a way to sign in.")

    @Argument(help: "The account.")
    var account: String

    @Argument(help: ArgumentHelp("The identity, as “supabase identities” shows it.", valueName: "id"))
    var identity: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().project(.unlinkIdentity, account, identity)
            } catch {
                throw IdentifierHint.explained(error, see: "ringback supabase identities \(account)")
            }
            if json.isWanted { Output.json(answer) } else { try SupabaseIdentities.show(answer) }
        }
    }
}
