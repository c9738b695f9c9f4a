import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseIdentities: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identities", abstract: "List the user's identities: the linked providers' accounts.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.listIdentities, account)
            if json.isWanted { Output.json(answer) } else { try SupabaseIdentities.show(answer) }
        }
    }

    static func show(_ answer: JSON) throws(RingbackError) {
        let list = answer["identities"]?.array ?? []
        guard !list.isEmpty else { return Output.note("The user has no linked provider's account.") }
        var table = Table(columns: ["PROVIDER", "WHO", "LAST SIGN-IN", "ID"])
        for json in list {
            let identity = try Identity(reading: json)
            let time = identity.lastSignInAt.map { TimeText.dateAndTime($0.secondsSince1970) }
            table.add([identity.provider, identity.email ?? "-", time ?? "-", identity.id])
        }
        Output.table(table)
    }
}
