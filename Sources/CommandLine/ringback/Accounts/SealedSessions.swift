import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// Sessions in the vault that belong to no configured account.
struct SealedSession {
    let account: String
    private let person: String
    let provider: String
    let clientID: String
    /// Its provider may be asked to revoke it.
    let isRevocable: Bool

    init(reading document: JSON) {
        account = document["account"]?.string ?? ""
        person = document["display_name"]?.string ?? "an unnamed user"
        provider = document["provider"]?.string ?? "its provider"
        clientID = document["client_id"]?.string ?? ""
        isRevocable = document["revocable"]?.bool == true
    }

    /// `mira@example.org at https://id.example.org`.
    var text: String { "\(Sanitizer.line(person)) at \(Sanitizer.line(provider, limit: 600))" }

    /// The sessions that the status lists.
    static func all(in status: JSON) -> [SealedSession] {
        (status["sealed_sessions"]?.array ?? []).map(SealedSession.init(reading:))
    }

    /// The command that removes an account's sessions.
    static func command(_ account: String, isConfigured: Bool) -> ShownCommand {
        isConfigured
            ? ShownCommand("ringback logout \(account) --sealed") : ShownCommand("ringback account remove \(account)")
    }

    /// Removes an account's sessions and prints the result for each. Throws if a provider could not be reached.
    static func remove(
        of account: String, revokes: Bool, _ calls: BrokerCalls, asJSON: Bool
    ) throws(RingbackError) {
        let answer = try calls.call(
            .removeSealedSessions, [account], query: [("skip_revocation", revokes ? nil : "true")],
            timeout: .seconds(120))
        let removed = answer["sessions"]?.array ?? []
        if asJSON {
            Output.json(answer)
        } else {
            for document in removed { show(document) }
        }
        guard let waiting = removed.first(where: { $0["revocation"]?.string == "waiting" }) else { return }
        var error =
            RingbackError(reading: waiting["error"])
            ?? RingbackError(.providerUnreachable, "The provider cannot be reached.", recovery: .retry)
        error.advice =
            "No program can use the session any more, but the provider has not revoked it. Try again: "
            + "\(shown: "ringback account remove \(account)"), or remove it without revocation: "
            + "\(shown: "ringback account remove \(account) --no-revoke")"
        throw error
    }

    private static func show(_ document: JSON) {
        guard let word = document["revocation"]?.string, word != "waiting" else { return }
        Output.line("Removed the session of \(SealedSession(reading: document).text) from the vault.")
        let rest = "Its tokens stay valid until they expire, unless you end the session at the provider."
        switch word {
        case "revoked": Output.note("The provider has revoked the session.")
        case "not_asked": Output.note("The provider was not asked to revoke the session. \(rest)")
        case "not_offered": Output.note("The provider offers no revocation. \(rest)")
        case "settings_gone":
            Output.note("The session could not be revoked, because the account's settings were removed. \(rest)")
        default:
            let reason = RingbackError(reading: document["error"])?.detail ?? "The provider rejected the request."
            Output.note("The session was not revoked: \(Sanitizer.line(reason, limit: 600)) \(rest)")
        }
    }
}
