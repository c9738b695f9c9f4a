import RingbackClient
import StrictJSON
import Terminal

/// An account's row of the overview.
struct OverviewAccount {
    let name: String
    let mark: Mark
    let state: String
    let who: String
    let validity: String
    /// What is wrong with it, or what its user should know.
    let problem: String?
    /// The command that helps with the problem.
    let remedy: ShownCommand?
    let isDefault: Bool
    /// Callers get tokens of it.
    let isUsable: Bool
    let needsSignIn: Bool

    /// An account of the configuration, about which no daemon was asked.
    init(unknown name: String) {
        self.name = name
        (mark, state, who, validity) = (.neutral, "not known", "-", "-")
        (problem, remedy) = (nil, nil)
        (isDefault, isUsable, needsSignIn) = (false, false, false)
    }

    init(reading document: JSON, isLocked: Bool) throws(RingbackError) {
        let account = try Account(reading: document)
        let isService = document["grant"] != nil
        name = account.name
        isDefault = account.isDefault
        isUsable = account.state.hasSession
        needsSignIn = account.state == .unauthenticated && !isService
        // The overview says once that the vault is locked; here it is the state.
        let isWaiting = isLocked && account.state == .loading
        let error = isWaiting ? nil : account.error
        problem = error.map { $0.userMessage ?? $0.detail } ?? ShowAccounts.notice(document, account)
        remedy = error.map { error in
            error.recovery == .signIn
                ? ShownCommand("ringback login \(account.name)") : ShownCommand("ringback doctor \(account.name)")
        }
        mark =
            problem != nil || account.isStale
            ? .warning : isUsable ? .good : isWaiting ? .bad : .neutral
        state = OverviewAccount.state(of: account, isLocked: isLocked)
        who = account.user?.email ?? account.user?.phone ?? account.subject ?? "-"
        validity =
            isUsable && (!isService || account.expiresAt != nil)
            ? TimeText.validity(until: account.expiresAt?.secondsSince1970, now: TimeText.now()) : "-"
    }

    /// The name, and whether verbs mean this account where none is named.
    var title: String { TextWidth.cut(name, to: 18) + (isDefault ? " (default)" : "") }

    private static func state(of account: Account, isLocked: Bool) -> String {
        switch account.state {
        case .authenticated, .refreshing: account.isStale ? "stale" : "signed in"
        case .unauthenticated: "not signed in"
        case .authenticating: "signing in"
        case .loading: isLocked ? "locked" : "loading"
        default: Sanitizer.line(account.state.rawValue, limit: 20)
        }
    }
}

/// The lines of the overview. None is wider than the terminal.
enum OverviewText {
    /// The accounts in columns, those with a problem first.
    ///
    /// - Parameter rows: lines at most; the rest is counted.
    static func accounts(_ accounts: [OverviewAccount], rows: Int, columns: Int) -> [String] {
        guard !accounts.isEmpty else { return ["No account is configured."] }
        let sorted = accounts.filter { $0.problem != nil } + accounts.filter { $0.problem == nil }
        let lines = sorted.map { $0.problem == nil ? 1 : 2 }
        var (shown, used) = (0, 1)
        while shown < sorted.count, used + lines[shown] + (shown + 1 < sorted.count ? 1 : 0) <= rows {
            used += lines[shown]
            shown += 1
        }
        let visible = sorted.prefix(shown)
        let width = { (label: String, limit: Int, text: (OverviewAccount) -> String) in
            min(limit, visible.map { TextWidth.of(text($0)) }.reduce(label.utf8.count, max))
        }
        let (name, state) = (width("ACCOUNT", 28, \.title), width("STATE", 20, \.state))
        let validity = width("TOKEN VALID", 20, \.validity)
        let who = max(4, min(width("WHO", 200, \.who), columns - name - state - validity - 8))
        let row = { (mark: String, cells: [String]) in
            let widths = [name, state, who, validity]
            let line = zip(cells, widths).map { fill(Sanitizer.line($0), to: $1) }.joined(separator: "  ")
            return mark + " " + String(line.reversed().drop { $0 == " " }.reversed())
        }
        var text = [
            Style.bold.apply(row(" ", ["ACCOUNT", "STATE", "WHO", "TOKEN VALID"]), on: .output)
        ]
        for account in visible {
            let cells = [account.title, account.state, account.who, account.validity]
            text.append(row(account.mark.text(on: .output), cells))
            if let problem = account.problem {
                text.append(TextWidth.cut("    " + Sanitizer.line(problem, limit: 400), to: columns))
            }
        }
        if shown < sorted.count { text.append("  … and \(sorted.count - shown) more: ringback accounts") }
        return text
    }

    /// A check, in two lines at most.
    static func check(_ mark: Mark, _ label: String, _ message: String, _ columns: Int) -> [String] {
        let indent = 16
        let words = Sanitizer.line(message, limit: 500).split(separator: " ")
        var first = ""
        var rest = words[...]
        while let word = rest.first, first.isEmpty || TextWidth.of(first + word) + 1 <= columns - indent {
            first += (first.isEmpty ? "" : " ") + word
            rest.removeFirst()
        }
        let head = mark.text(on: .output) + " " + fill(label, to: indent - 2)
        let second = TextWidth.cut(rest.joined(separator: " "), to: columns - indent)
        return [head + TextWidth.cut(first, to: columns - indent)]
            + (second.isEmpty ? [] : [String(repeating: " ", count: indent) + second])
    }

    private static func fill(_ text: String, to width: Int) -> String {
        let cut = TextWidth.cut(text, to: width)
        return cut + String(repeating: " ", count: max(0, width - TextWidth.of(cut)))
    }
}
