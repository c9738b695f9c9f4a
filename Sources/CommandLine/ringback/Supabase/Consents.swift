import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseConsents: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consents", abstract: "List the OAuth clients that the user has allowed at the project.",
        discussion: "These are apps and AI tools that sign in with the project's own OAuth server.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.listConsents, account)
            guard !json.isWanted else { return Output.json(answer) }
            let entries = answer["consents"]?.array ?? []
            guard !entries.isEmpty else { return Output.note("The user has allowed no client.") }
            var table = Table(columns: ["CLIENT", "SCOPES", "SINCE", "ID"])
            for entry in entries {
                let consent = try Consent(reading: entry)
                let time = consent.grantedAt.map { TimeText.dateAndTime($0.secondsSince1970) }
                table.add([
                    consent.clientName ?? "-", consent.scopes.joined(separator: " "), time ?? "-", consent.clientID,
                ])
            }
            Output.table(table)
        }
    }
}

struct SupabaseRevokeConsent: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "revoke-consent", abstract: "Revoke what the user has allowed a client.",
        discussion: """
            The project ends the client's sessions of this user. The client has to ask the user before it can sign in \
            again. Its access tokens are valid until they expire.
            """)
    static let endpoint = Endpoint.revokeConsent
    static let list: ShownCommand = "ringback supabase consents"

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The client, as “supabase consents” shows it.")
    var id: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func show(_ answer: JSON) throws(RingbackError) { Output.line("Revoked the consent for \(Sanitizer.line(id))") }
}
