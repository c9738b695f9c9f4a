import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct ShowAccounts: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accounts", abstract: "List the accounts and their state.")

    @Argument(help: "One account alone.")
    var account: String?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let calls = try daemon.calls()
            let answer = if let account { try calls.account(account) } else { try calls.call("GET", "/v1/accounts") }
            guard !json.isWanted else { return Output.json(answer) }
            let documents = account == nil ? answer["accounts"]?.array ?? [] : [answer]
            guard !documents.isEmpty else {
                return Output.note(
                    "No account is configured. Run: ringback account add NAME --issuer URL --client-id ID")
            }
            var table = Table(columns: ["NAME", "PROVIDER", "STATE", "WHO", "TOKEN VALID", "PROBLEM"])
            for document in documents { table.add(ShowAccounts.cells(try Account(reading: document))) }
            for (index, line) in table.lines.enumerated() {
                Output.line(index == 0 ? Style.bold.apply(line, on: .output) : line)
            }
        }
    }

    /// `authenticated (aal1, needs aal2)`: a level is told where it is not enough.
    private static func state(_ account: Account) -> String {
        let isEnough = account.assurance == account.nextAssurance
        let level = isEnough ? nil : Assurance.text(account.assurance, account.nextAssurance)
        let notes = [account.isStale ? "stale" : nil, level]
        let text = notes.compactMap { $0 }.joined(separator: "; ")
        return account.state.rawValue + (text.isEmpty ? "" : " (\(text))")
    }

    private static func cells(_ account: Account) -> [String] {
        [
            account.name, account.provider, state(account),
            account.user?.email ?? account.user?.phone ?? account.subject ?? "-",
            account.state.hasSession ? TimeText.validity(until: account.expiresAt, now: TimeText.now()) : "-",
            account.error.map { $0.userMessage ?? $0.detail } ?? "",
        ]
    }
}
