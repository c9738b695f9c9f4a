import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct ShowSession: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Show an account's session: its user, scope and expiry.",
        discussion: """
            No token is shown unless --show-token asks for it; `ringback token` prints the access token. Without ACCOUNT \
            it is the only account, else the default account (see ringback use).
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String?

    @OptionGroup var choice: SessionOptions

    @Option(
        help: ArgumentHelp(
            "Additional members, comma-separated: profile; with --show-token also id_token, provider_token.",
            valueName: "words"))
    var include: String?

    @Flag(help: "Include the tokens in the JSON form.")
    var showToken = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    /// The members that hold tokens.
    private static let tokens = ["access_token", "id_token", "provider_token"]

    func validate() throws {
        guard !showToken || json.isWanted else { throw ValidationError("--show-token belongs to --json.") }
        let words = include?.split(separator: ",").map(String.init) ?? []
        if let word = words.first(where: ShowSession.tokens.contains), !showToken {
            throw ValidationError("--include \(word) needs --json and --show-token.")
        }
    }

    private func withoutTokens(_ answer: JSON) -> JSON {
        guard !showToken, var object = answer.object else { return answer }
        for name in ShowSession.tokens { object[name] = nil }
        return .object(object)
    }

    func run() throws {
        let account = try AccountChoice.name(account, for: "session", daemon)
        try present(account: account) { () throws(RingbackError) in
            var request = choice.request(account)
            request.include = "user" + (include.map { ",\($0)" } ?? "")
            let answer = try daemon.calls().session(request)
            TokenVerb.warn(of: answer["scope"]?.string, askedFor: request.scope)
            guard !json.isWanted else { return Output.json(withoutTokens(answer)) }
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
            let validity = TimeText.phrase(until: session.expiresAt?.secondsSince1970, now: TimeText.now())
            Output.field("Token", "\(session.tokenType), \(validity)")
        }
    }
}
