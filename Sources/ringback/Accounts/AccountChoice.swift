import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
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
        let signIns = all.filter { $0["grant"] == nil }
        var accounts: [Account] = []
        for document in needsUser && !signIns.isEmpty ? signIns : all {
            accounts.append(try Account(reading: document))
        }
        guard let first = accounts.first else {
            throw RingbackError(
                AccountChoice.kind,
                "No account is configured. Run: ringback account add NAME --issuer URL --client-id ID")
        }
        if accounts.count == 1 { return first.name }
        if let account = accounts.first(where: \.isDefault) { return account.name }
        guard let interruption, PasteEntry.isPossible, Console.Stream.errors.isTerminal else {
            let more = accounts.count > AccountChoice.most ? ", …" : ""
            let names = accounts.prefix(AccountChoice.most).map { Sanitizer.line($0.name) }.joined(separator: ", ")
            throw RingbackError(
                AccountChoice.kind,
                "There are several accounts: \(names)\(more). Usage: ringback \(verb) ACCOUNT, or choose a default with: "
                    + "ringback use ACCOUNT")
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
        while true {
            _ = Console.write("Number or name: ", to: .errors)
            guard let line = readLine(interruption) else {
                Output.note("")
                throw RingbackError(.cancelled, "No account was chosen.")
            }
            let number = Int(line).map { $0 - 1 }
            if let number, accounts.indices.contains(number) { return accounts[number].name }
            if accounts.contains(where: { $0.name == line }) { return line }
            if !line.isEmpty { Output.note("There is no account “\(Sanitizer.line(line, limit: 80))”.") }
        }
    }

    /// A line of the terminal without blanks around it; nil at the end of the input, and after a signal.
    private func readLine(_ interruption: Interruption) -> String? {
        while true {
            var entries = [0, interruption.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            if unsafe poll(&entries, 2, -1) < 0, errno != EINTR { return nil }
            if interruption.isInterrupted || entries[1].revents != 0 { return nil }
            guard entries[0].revents != 0 else { continue }
            // A terminal gives a line at a time.
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = unsafe read(0, &bytes, bytes.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return nil }
            let words = String(decoding: bytes[..<count], as: UTF8.self).split {
                $0 == " " || $0 == "\t" || $0.isNewline
            }
            return words.joined(separator: " ")
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
