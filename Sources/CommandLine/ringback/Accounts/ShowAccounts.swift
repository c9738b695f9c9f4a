import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ShowAccounts: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        commandName: "accounts", abstract: "List the accounts and their state.")

    @Argument(help: "Only this account.", completion: Completions.accounts) var account: String?
    @OptionGroup var options: CallOptions

    func run() throws {
        let calls = try daemon.calls()
        let answer = if let account { try calls.account(account) } else { try calls.call(.listAccounts) }
        guard !json.isWanted else { return Output.json(answer) }
        let documents = account == nil ? answer.list("accounts") : [answer]
        guard !documents.isEmpty else { return Output.note(AccountAdd.noneYet) }
        let isLoading = documents.contains { $0["state"]?.string == Account.State.loading.rawValue }
        let isLocked = isLoading && (try? DaemonStatus(reading: calls.call(.getStatus)))?.isVaultLocked == true
        // Most providers do not say how long a session lasts.
        let accounts = try documents.map { try Account(reading: $0) }
        let hasEnds = accounts.contains { $0.sessionEnd != nil }
        let problems = zip(documents, accounts).map { document, account in
            // A locked vault cannot be read: the state stays so until it is unlocked.
            isLocked && account.state == .loading
                ? "" : account.problem?.problemText ?? ShowAccounts.notice(document, account) ?? ""
        }
        let hasProblems = problems.contains { !$0.isEmpty }
        let rows = zip(documents, zip(accounts, problems)).map { document, pair in
            let (account, problem) = pair
            let cells = [
                account.name, account.providerHost ?? account.provider, account.stateText(isLocked: isLocked),
                account.who ?? document["through"]?.string.map { "through \($0)" } ?? "-",
                account.validity(isService: document["grant"] != nil),
            ]
            return cells + (hasEnds ? [account.sessionEnd ?? "-"] : []) + (hasProblems ? [problem] : [])
        }
        let columns = ["NAME", "PROVIDER", "STATE", "WHO", "TOKEN VALID"]
        Output.table(
            columns + (hasEnds ? ["SIGNED IN UNTIL"] : []) + (hasProblems ? ["PROBLEM"] : []), rows,
            below: hasProblems ? 1 : 0, shrinking: [[0, 1, 3], [2]])
        if isLocked { Output.note("The vault is locked. Run: ringback unlock") }
    }

    /// What the user should know of a session that works. Lost scopes are short here: each account is one line.
    static func notice(_ document: JSON, _ account: Account) -> String? {
        if let scope = document["lost_scope"]?.string {
            return "The session lost the scope \(scope). Run: \(shown: "ringback login \(account.name)")"
        }
        return switch document["revocation"]?.string {
        case "pending": "The provider has not revoked a session that was signed out. Ringback will ask it again."
        case "refused": "The provider refused to revoke a session that was signed out."
        default: document["notice"]?.string
        }
    }
}

struct Use: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Choose the default account, or show it.",
        discussion: """
            With a name, writes default = "NAME" into the configuration file and lets a running daemon read it; comments \
            stay. Without one, prints the default account. It is the account of `login`, `token`, `session` and \
            `refresh` without ACCOUNT, if there are several. Exit status 1: there is no default account.
            """)

    @Argument(help: "The account.", completion: Completions.accounts) var name: String?
    @OptionGroup var config: ConfigurationOption
    @OptionGroup var options: CallOptions

    func run() throws {
        let file = try config.file()
        if let name { try choose(name, file) } else { try show(file) }
    }

    private func choose(_ name: String, _ file: ConfigurationFile) throws(RingbackError) {
        // A configuration whose only mistake is its default is corrected by this.
        let former = try? file.report()
        if let known = former?.names("accounts"), !known.isEmpty, !known.contains(name) {
            throw RingbackError(.accountNotFound, UnknownAccount.text(name, known: known))
        }
        var lines = ConfigurationLines(try file.text() ?? [])
        lines.setDefault(name)
        try file.replace(with: lines.text) { report in
            let isSame = former?["accounts"] == nil || former?.names("accounts") == report.names("accounts")
            return isSame && report["default"]?["account"]?.string == name
        }
        json.print(
            ["default": .string(name), "file": .string(file.path)],
            or: "The default account is \(name): \(Sanitizer.line(file.path, limit: 600))")
        try daemon.calls().reloadIfRunning()
    }

    private func show(_ file: ConfigurationFile) throws(RingbackError) {
        let report = try file.report()
        guard let entry = report["default"], let name = entry["account"]?.string else {
            let isEmpty = report.names("accounts").isEmpty
            throw RingbackError(
                .notFound,
                isEmpty ? AccountAdd.noneYet : "There is no default account. To choose one: ringback use NAME")
        }
        let file = AccountSource(of: entry)?.file ?? file.path
        json.print(["default": .string(name), "file": .string(file)], or: name)
    }
}

struct AccountVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Add, edit and remove accounts.",
        subcommands: [AccountAdd.self, AccountEdit.self, AccountRemove.self])
}

struct AccountSource {
    let file: String
    let line: Int?

    init?(of entry: JSON?) {
        guard let source = entry?["source"], let file = source["file"]?.string else { return nil }
        self.file = file
        line = source["line"]?.integer
    }

    init?(of name: String, in report: JSON) { self.init(of: ConfigurationCheck.account(name, in: report)) }

    var text: String { Sanitizer.line(file + (line.map { ", line \($0)" } ?? ""), limit: 600) }
}

extension BrokerCalls {
    func accounts() throws(RingbackError) -> [Account] {
        try call(.listAccounts).list("accounts").map(Account.init(reading:))
    }

    /// Without a daemon there is nothing to do.
    func reloadIfRunning() throws(RingbackError) { _ = try ignoring(.noDaemon, call: call(.reload)) }
}

struct Reload: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Let the daemon read its configuration again.",
        discussion: "If it has mistakes, nothing changes: they are listed, and the exit status is 78.")

    @OptionGroup var options: CallOptions

    func run() throws {
        let answer = try daemon.calls().call(.reload)
        guard !json.isWanted else { return Output.json(answer) }
        Output.line("The configuration was read again.")
        let tables = answer.texts("restart_needed")
        if !tables.isEmpty {
            let names = tables.map { "[\(Sanitizer.line($0))]" }.joined(separator: ", ")
            Output.note("Changes in \(names) take effect when the daemon is started again.")
        }
    }
}

/// Which account a verb means if none was named: the only one, else the default. `login` asks on a terminal. Scripts
/// never get a guess: without a default, several accounts are a mistake in the usage.
struct AccountChoice {
    static let kind: RingbackError.Kind = "account_needed"

    let verb: String
    let calls: BrokerCalls
    var needsUser = false
    var asksOnTerminal = false

    static func name(_ stated: String?, for verb: String, _ daemon: DaemonOptions) throws(RingbackError) -> String {
        if let stated { return stated }
        return try AccountChoice(verb: verb, calls: try daemon.calls()).name()
    }

    func name() throws(RingbackError) -> String {
        var accounts = try calls.accounts()
        if needsUser, accounts.contains(where: \.needsSignIn) { accounts.removeAll { !$0.needsSignIn } }
        guard let first = accounts.first else { throw RingbackError(AccountChoice.kind, AccountAdd.noneYet) }
        if accounts.count == 1 { return first.name }
        if let account = accounts.first(where: \.isDefault) { return account.name }
        guard asksOnTerminal, Questions.arePossible else {
            let more = accounts.count > AccountChoice.most ? ", …" : ""
            let names = accounts.prefix(AccountChoice.most).map { Sanitizer.line($0.name) }.joined(separator: ", ")
            throw RingbackError(
                AccountChoice.kind,
                "There are several accounts: \(names)\(more). Usage: \(shown: "ringback \(verb) ACCOUNT"), or choose a "
                    + "default with: ringback use ACCOUNT")
        }
        return try ask(accounts)
    }

    private static let most = 20

    private func ask(_ accounts: [Account]) throws(RingbackError) -> String {
        let width = accounts.map(\.name.utf8.count).max() ?? 0
        Output.note("Which account?")
        for (index, account) in accounts.enumerated() {
            let number = "\(index + 1)".padded(to: "\(accounts.count)".utf8.count, isRight: true)
            let who = account.who.map { " as \(Sanitizer.line($0, limit: 100))" } ?? ""
            let state = account.stateText() + (account.state.hasSession ? who : "")
            Output.note("  \(number)  \(account.name.padded(to: width))  \(state)")
        }
        let questions = Questions(ending: "No account was chosen.")
        while true {
            let line = try questions.line("Number or name: ")
            let number = Int(line).map { $0 - 1 }
            if let number, accounts.indices.contains(number) { return accounts[number].name }
            if accounts.contains(where: { $0.name == line }) { return line }
            if !line.isEmpty { Output.note("There is no account “\(Sanitizer.line(line, limit: 80))”.") }
        }
    }
}

extension String {
    func padded(to width: Int, isRight: Bool = false) -> String {
        let blanks = String(repeating: " ", count: max(0, width - utf8.count))
        return isRight ? blanks + self : self + blanks
    }
}

extension Account.State {
    /// What people read; the API has the other words.
    var text: String {
        switch self {
        case .authenticated, .refreshing: "signed in"
        case .unauthenticated: "not signed in"
        case .authenticating: "signing in"
        default: Sanitizer.line(rawValue, limit: 20)
        }
    }
}

extension RingbackError {
    /// In a list. For an expired flow the detail says more than the message for the user.
    var problemText: String { kind == .flowExpired ? detail : userMessage ?? detail }
}

extension Account {
    /// The error, unless it is only of a sign-in that failed while the session is good.
    var problem: RingbackError? {
        let isOfSignIn = error?.problem.map { ErrorCode.ofSignIns.contains($0.code) } ?? false
        return isOfSignIn && state.hasSession && !isStale ? nil : error
    }

    var who: String? { user?.email ?? user?.phone ?? subject }

    /// `signed in (aal1, needs aal2)`: the level is shown where the user's factors ask for a higher one.
    func stateText(isLocked: Bool = false) -> String {
        if isLocked, state == .loading { return "locked" }
        if !needsSignIn, state == .unauthenticated, error == nil { return "needs no sign-in" }
        if hasEndedSession { return "sign-in needed" }
        let isEnough = assurance == nextAssurance
        let level = isEnough ? nil : Assurance.text(assurance, nextAssurance)
        let notes = [isStale ? "stale" : nil, level].compactMap(\.self)
        return state.text + (notes.isEmpty ? "" : " (\(notes.joined(separator: "; ")))")
    }

    /// There was a session, and only a sign-in brings the next token.
    private var hasEndedSession: Bool {
        guard !state.hasSession || isStale, let error else { return false }
        return [.sessionExpired, .refreshRefused, .signInRequired].contains(error.kind)
    }

    /// Until when no sign-in is needed, if the provider says so; nil if it does not, and without a session.
    var sessionEnd: String? {
        guard state.hasSession, needsSignIn else { return nil }
        if let endsAt { return TimeText.dateAndMinute(endsAt.secondsSince1970) }
        return isRefreshable || expiresAt == nil ? nil : "no refresh token"
    }

    /// Until when its token is valid. A service has a session before a caller has asked for its token.
    func validity(isService: Bool) -> String {
        guard state.hasSession, !isService || expiresAt != nil else { return "-" }
        return TimeText.validity(until: expiresAt?.secondsSince1970, now: TimeText.now())
    }
}
