import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct ShowSession: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Show an account's session: whose it is, what for, how long.",
        discussion: "The token itself is only in the JSON form; `ringback token` prints it.")

    @Argument(help: "The account.")
    var account: String

    @OptionGroup var choice: SessionOptions

    @Option(
        help: ArgumentHelp(
            "More of it, comma-separated: id_token, provider_token, profile; tokens in the JSON form alone.",
            valueName: "words"))
    var include: String?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            var request = choice.request(account)
            request.include = "user" + (include.map { ",\($0)" } ?? "")
            let answer = try daemon.calls().session(request)
            guard !json.isWanted else { return Output.json(answer) }
            let session = try Session(reading: answer)
            Output.field("Account", session.account.isEmpty ? account : session.account)
            Output.field("Subject", session.subject)
            Output.field("Name", session.user?.name)
            Output.field("E-mail", session.user?.email)
            Output.field("Phone", session.user?.phone)
            Output.field("Level", Assurance.text(session.assurance, session.nextAssurance))
            Output.field("Profile", answer["profile_status"]?.string)
            Output.field("Issuer", session.issuer)
            Output.field("Scope", session.scope)
            let validity = TimeText.validity(until: session.expiresAt, now: TimeText.now())
            Output.field("Token", "\(session.tokenType), valid: \(validity)")
        }
    }
}
