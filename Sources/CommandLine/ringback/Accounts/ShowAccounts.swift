import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct ShowAccounts: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accounts", abstract: "List the accounts and their state.")

    @Argument(help: "Only this account.", completion: Completions.accounts)
    var account: String?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let calls = try daemon.calls()
            let answer = if let account { try calls.account(account) } else { try calls.call(.listAccounts) }
            guard !json.isWanted else { return Output.json(answer) }
            let documents = account == nil ? answer["accounts"]?.array ?? [] : [answer]
            guard !documents.isEmpty else {
                return Output.note("No account is configured. Run: \(shown: AccountAdd.command)")
            }
            let isLoading = documents.contains { $0["state"]?.string == Account.State.loading.rawValue }
            let isLocked = isLoading && (try? DaemonStatus(reading: calls.call(.getStatus)))?.isVaultLocked == true
            var table = Table(columns: ["NAME", "PROVIDER", "STATE", "WHO", "TOKEN VALID", "PROBLEM"])
            for document in documents {
                let account = try Account(reading: document)
                var cells = ShowAccounts.cells(account, isService: document["grant"] != nil)
                // A locked vault cannot be read: the state stays so until it is unlocked.
                if isLocked, account.state == .loading { (cells[2], cells[5]) = ("locked", "") }
                if cells[5].isEmpty, let notice = ShowAccounts.notice(document, account) { cells[5] = notice }
                table.add(cells)
            }
            Output.table(table, below: 1)
            if isLocked { Output.note("The vault is locked. Run: ringback unlock") }
        }
    }

    /// What the user should know of a session that works. Lost scopes are short here: each account is one line.
    static func notice(_ document: JSON, _ account: Account) -> String? {
        guard let scope = document["lost_scope"]?.string else {
            switch document["revocation"]?.string {
            case "pending":
                return "The provider has not revoked a session that was signed out. Ringback will ask it again."
            case "refused": return "The provider refused to revoke a session that was signed out."
            default: return document["notice"]?.string
            }
        }
        return "The session lost the scope \(scope). Run: \(shown: "ringback login \(account.name)")"
    }

    /// `authenticated (aal1, needs aal2)`: the level is shown where the user's factors ask for a higher one.
    private static func state(_ account: Account) -> String {
        let isEnough = account.assurance == account.nextAssurance
        let level = isEnough ? nil : Assurance.text(account.assurance, account.nextAssurance)
        let notes = [account.isStale ? "stale" : nil, level]
        let text = notes.compactMap { $0 }.joined(separator: "; ")
        return account.state.rawValue + (text.isEmpty ? "" : " (\(text))")
    }

    private static func cells(_ account: Account, isService: Bool) -> [String] {
        // A service has a session before it has a token: perhaps no caller has asked for one yet.
        let hasToken = account.state.hasSession && (!isService || account.expiresAt != nil)
        return [
            account.name, account.provider, state(account),
            account.user?.email ?? account.user?.phone ?? account.subject ?? "-",
            hasToken ? TimeText.validity(until: account.expiresAt?.secondsSince1970, now: TimeText.now()) : "-",
            account.error.map { $0.userMessage ?? $0.detail } ?? "",
        ]
    }
}
