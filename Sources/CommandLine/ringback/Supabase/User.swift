import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseUser: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Show the signed-in user, fetched from the project now.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.getUser, account)
            if json.isWanted { Output.json(answer) } else { SupabaseUser.show(answer["user"] ?? .null) }
        }
    }

    static func show(_ user: JSON) {
        Output.field("Id", user["id"]?.string)
        Output.field("E-mail", address(user, "email", "new_email"))
        Output.field("Phone", address(user, "phone", "new_phone"))
        if user["is_anonymous"]?.bool == true { Output.field("Anonymous", "yes") }
        let providers = user["app_metadata"]?["providers"]?.array?.compactMap(\.string) ?? []
        Output.field("Providers", providers.joined(separator: ", "))
        let factors = user["factors"]?.array?.filter { $0["status"]?.string == "verified" } ?? []
        Output.field("Factors", factors.isEmpty ? nil : "\(factors.count)")
        Output.field("Since", user["created_at"]?.string)
        Output.field("Last seen", user["last_sign_in_at"]?.string)
        if let data = user["user_metadata"]?.object, !data.members.isEmpty {
            Output.field("Metadata", JSON.object(data).text)
        }
    }

    /// The address, whether it is confirmed, and the new one that waits for its confirmation.
    private static func address(_ user: JSON, _ name: String, _ new: String) -> String? {
        var text = user[name]?.string ?? ""
        if !text.isEmpty, user["\(name)_confirmed_at"]?.string == nil { text += " (not confirmed)" }
        if let next = user[new]?.string, !next.isEmpty {
            text += (text.isEmpty ? "" : "; ") + "\(next) waits for its confirmation"
        }
        return text
    }
}
