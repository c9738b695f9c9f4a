import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
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
                if !account.needsSignIn, account.state == .unauthenticated { cells[2] = "needs no sign-in" }
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

struct Use: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Choose the default account, or show it.",
        discussion: """
            With a name, writes default = "NAME" into the configuration file and lets a running daemon read it; comments \
            stay. Without one, prints the default account. It is the account of `login`, `token`, `session` and \
            `refresh` without ACCOUNT, if there are several. Exit status 1: there is no default account.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var name: String?

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let file = try config.file()
            if let name { try choose(name, file) } else { try show(file) }
        }
    }

    private func choose(_ name: String, _ file: ConfigurationFile) throws(RingbackError) {
        // A configuration whose only mistake is its default is corrected by this.
        let former = try? file.report()
        if let known = former.map(Use.names), !known.isEmpty, !known.contains(name) {
            throw RingbackError(.accountNotFound, UnknownAccount.text(name, known: known))
        }
        var lines = ConfigurationLines(try file.text() ?? [])
        lines.setDefault(name)
        try file.replace(with: lines.text) { report in
            let isSame = former?["accounts"] == nil || former.map(Use.names) == Use.names(report)
            return isSame && report["default"]?["account"]?.string == name
        }
        if json.isWanted {
            Output.json(["default": .string(name), "file": .string(file.path)])
        } else {
            Output.line("The default account is \(name): \(Sanitizer.line(file.path, limit: 600))")
        }
        try daemon.calls().reloadIfRunning()
    }

    private func show(_ file: ConfigurationFile) throws(RingbackError) {
        let report = try file.report()
        guard let entry = report["default"], let name = entry["account"]?.string else {
            guard !Use.names(report).isEmpty else {
                throw RingbackError(.notFound, "No account is configured. Run: \(shown: AccountAdd.command)")
            }
            throw RingbackError(.notFound, "There is no default account. To choose one: ringback use NAME")
        }
        guard json.isWanted else { return Output.line(name) }
        let file = AccountSource(of: entry)?.file ?? file.path
        Output.json(["default": .string(name), "file": .string(file)])
    }

    private static func names(_ report: JSON) -> [String] {
        (report["accounts"]?.array ?? []).compactMap { $0["name"]?.string }
    }
}

struct AccountVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Add, edit and remove accounts.",
        subcommands: [AccountAdd.self, AccountEdit.self, AccountRemove.self])
}

/// Where an account of the configuration is defined.
struct AccountSource {
    /// The file's path.
    let file: String
    /// From 1; nil if the report gave none.
    let line: Int?

    init(file: String, line: Int? = nil) {
        self.file = file
        self.line = line
    }

    /// The `source` of an entry of the configuration's report; nil without one.
    init?(of entry: JSON?) {
        guard let source = entry?["source"], let file = source["file"]?.string else { return nil }
        self.init(file: file, line: source["line"]?.integer)
    }

    /// The source of the account in a report; nil if the report has no such account.
    init?(of name: String, in report: JSON) {
        self.init(of: ConfigurationCheck.account(name, in: report))
    }

    var text: String { Sanitizer.line(file + (line.map { ", line \($0)" } ?? ""), limit: 600) }
}

extension BrokerCalls {
    /// Makes a running daemon read the configuration. Without a daemon there is nothing to do.
    func reloadIfRunning() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try call(.reload)
        } catch {
            if error.kind != .noDaemon { throw error }
        }
    }
}

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let the daemon read its configuration again.",
        discussion: "If it has mistakes, nothing changes: they are listed, and the exit status is 78.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.reload)
            guard !json.isWanted else { return Output.json(answer) }
            Output.line("The configuration was read again.")
            let tables = (answer["restart_needed"]?.array ?? []).compactMap(\.string)
            if !tables.isEmpty {
                let names = tables.map { "[\(Sanitizer.line($0))]" }.joined(separator: ", ")
                Output.note("Changes in \(names) take effect when the daemon is started again.")
            }
        }
    }
}
