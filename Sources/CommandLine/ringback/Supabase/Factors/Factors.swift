import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseFactors: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "factors", abstract: "List the user's second factors.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let calls = try daemon.calls()
            let answer = try calls.project(.listFactors, account)
            guard !json.isWanted else { return Output.json(answer) }
            let factors = try SupabaseFactors.read(answer)
            guard !factors.isEmpty else {
                return Output.note(
                    "There is no second factor. To add one: \(shown: "ringback supabase enroll \(account)")")
            }
            var table = Table(columns: ["TYPE", "NAME", "STATUS", "SINCE", "ID"])
            for factor in factors {
                table.add([
                    factor.kind.rawValue, factor.name ?? factor.phone ?? "-",
                    factor.isVerified ? "verified" : "unverified",
                    factor.createdAt.map { TimeText.dateAndTime($0.secondsSince1970) } ?? "-", factor.id,
                ])
            }
            Output.table(table)
        }
    }

    static func read(_ answer: JSON) throws(RingbackError) -> [Factor] {
        var factors: [Factor] = []
        for json in answer["factors"]?.array ?? [] { factors.append(try Factor(reading: json)) }
        return factors
    }
}
