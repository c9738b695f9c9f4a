import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct SupabasePasskeys: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passkeys", abstract: "List the user's passkeys.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().passkeys(account)
            guard !json.isWanted else { return Output.json(answer) }
            let entries = answer["passkeys"]?.array ?? []
            guard !entries.isEmpty else {
                return Output.note(
                    "There is no passkey. To add one: \(shown: "ringback supabase register-passkey \(account)")")
            }
            var table = Table(columns: ["NAME", "SINCE", "LAST USED", "ID"])
            for entry in entries {
                let passkey = try Passkey(reading: entry)
                let times = [passkey.createdAt, passkey.lastUsedAt].map { time in
                    time.map { TimeText.dateAndTime($0.secondsSince1970) } ?? "-"
                }
                table.add([passkey.name ?? "-"] + times + [passkey.id])
            }
            Output.table(table)
        }
    }
}
