import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// Which account a verb means if none was named: the only one, else the default. `login` asks on a terminal. Scripts
/// never get a guess: without a default, several accounts are a mistake in the usage.
struct AccountChoice {
    /// For a mistake in the usage: several accounts, and none is named.
    static let kind: RingbackError.Kind = "account_needed"

    let verb: String
    let calls: BrokerCalls
    /// Only accounts that a user signs in to.
    var needsUser = false
    /// Asks on a terminal; ends the wait.
    var interruption: Interruption?

    /// The name that was stated, or the account that is meant. A failure is printed and becomes the exit status.
    static func name(_ stated: String?, for verb: String, _ daemon: DaemonOptions) throws -> String {
        if let stated { return stated }
        var name = ""
        try present { () throws(RingbackError) in
            name = try AccountChoice(verb: verb, calls: try daemon.calls()).name()
        }
        return name
    }

    /// The account that is meant.
    func name() throws(RingbackError) -> String {
        let all = try calls.call(.listAccounts)["accounts"]?.array ?? []
        var accounts: [Account] = []
        for document in all { accounts.append(try Account(reading: document)) }
        if needsUser, accounts.contains(where: \.needsSignIn) { accounts.removeAll { !$0.needsSignIn } }
        guard let first = accounts.first else {
            throw RingbackError(
                AccountChoice.kind,
                "No account is configured. Run: \(shown: AccountAdd.command)")
        }
        if accounts.count == 1 { return first.name }
        if let account = accounts.first(where: \.isDefault) { return account.name }
        guard let interruption, Questions.arePossible else {
            let more = accounts.count > AccountChoice.most ? ", …" : ""
            let names = accounts.prefix(AccountChoice.most).map { Sanitizer.line($0.name) }.joined(separator: ", ")
            throw RingbackError(
                AccountChoice.kind,
                "There are several accounts: \(names)\(more). Usage: \(shown: "ringback \(ShownCommand(words: verb.split(separator: " ").map(String.init))) ACCOUNT"), "
                    + "or choose a default with: ringback use ACCOUNT")
        }
        return try ask(accounts, interruption)
    }

    /// The accounts that are listed at most.
    private static let most = 20

    private func ask(_ accounts: [Account], _ interruption: Interruption) throws(RingbackError) -> String {
        let width = accounts.map(\.name.utf8.count).max() ?? 0
        Output.note("Which account?")
        for (index, account) in accounts.enumerated() {
            let number = "\(index + 1)".padded(to: "\(accounts.count)".utf8.count, isRight: true)
            Output.note("  \(number)  \(account.name.padded(to: width))  \(AccountText.state(of: account))")
        }
        let questions = Questions(interruption: interruption, ending: "No account was chosen.")
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
    /// The text with blanks up to a number of ASCII characters.
    func padded(to width: Int, isRight: Bool = false) -> String {
        let blanks = String(repeating: " ", count: max(0, width - utf8.count))
        return isRight ? blanks + self : self + blanks
    }
}

extension AccountText {
    /// Who is signed in: `signed in as alice@example.org`.
    static func state(of account: Account) -> String {
        guard account.state.hasSession else {
            return account.state == .unauthenticated ? "not signed in" : account.state.rawValue
        }
        let who = account.user?.email ?? account.user?.phone ?? account.subject
        return "signed in" + (who.map { " as \(Sanitizer.line($0, limit: 100))" } ?? "")
    }
}
