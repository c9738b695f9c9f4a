import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseReauthenticate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reauthenticate", abstract: "Send the code that a change of the password may require.",
        discussion:
            "It goes to the address or number that the project knows; “supabase update-user --nonce-fd” takes it.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.reauthenticate, account, body: JSONObject())
            guard !json.isWanted else { return Output.json(answer) }
            Output.line(
                "A code was sent. Then: \(shown: "ringback supabase update-user \(account) --password --nonce-fd 0")")
        }
    }
}
