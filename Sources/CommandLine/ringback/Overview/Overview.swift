import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// How things stand, for `ringback` without a verb. It starts no daemon, and no provider is asked.
struct Overview {
    private var examination: DoctorExamination
    /// True if systemd listens at the socket and no daemon runs. A connection would start one.
    private let isAsleep: Bool
    private var accounts: [OverviewAccount] = []
    private var isLocked = false
    private var failure: RingbackError?

    init() {
        examination = DoctorExamination(account: nil, socket: nil)
        isAsleep = examination.hasManager && Overview.isActivated
        if !isAsleep { examination.lookAtSocket() }
        if examination.grant == nil {
            examination.lookAtConfiguration()
            examination.lookAtUnit()
            examination.report.lookAtBrowser()
            lookAtSchemes()
        }
        readAccounts()
    }

    /// True if the socket unit waits for its first connection at the usual path.
    private static var isActivated: Bool {
        let question = ["systemctl", "--user", "show", "ringback.socket", "--property=SubState", "--property=Listen"]
        guard let path = try? SocketPlace.path(stated: nil), let answer = Tool.run(question, within: .seconds(5)),
            answer.status == 0
        else { return false }
        let lines = answer.text.split(separator: "\n")
        return lines.contains("SubState=listening")
            && lines.contains { $0.hasPrefix("Listen=") && $0.contains("\(path) (Stream)") }
    }

    private mutating func lookAtSchemes() {
        let uses = examination.uses()
        guard !uses.isEmpty, SchemeDesktop.hasSession, let desktop = try? SchemeDesktop() else { return }
        let troubles = uses.compactMap { SchemeTrips.handlerTrouble($0, desktop) }
        for trouble in troubles { examination.report.add(trouble) }
        if troubles.isEmpty {
            let names = uses.map(\.scheme.name).joined(separator: ", ")
            examination.report.add("scheme", .ok, "Links of \(names) come to ringback.")
        }
    }

    private mutating func readAccounts() {
        guard let calls = examination.calls else {
            accounts = (examination.configuration?.names("accounts") ?? []).map(OverviewAccount.init(unknown:))
            return
        }
        do throws(RingbackError) {
            let status = try DaemonStatus(reading: calls.call(.getStatus, timeout: .seconds(5)))
            isLocked = status.isVaultLocked
            if isLocked {
                let reason = status.vaultLockReason.map { " \($0)" } ?? ""
                examination.report.add("vault", .wrong, "It is locked: no session is served.\(reason)")
            }
            let documents = try calls.call(.listAccounts, timeout: .seconds(5)).list("accounts")
            for document in documents { accounts.append(try OverviewAccount(reading: document, isLocked: isLocked)) }
        } catch {
            failure = error
        }
    }

    private var next: ShownCommand { needed ?? using }

    /// Problems that prevent everything come first, then those of the accounts, then the others. Nil if there is
    /// nothing to do.
    private var needed: ShownCommand? {
        let lines = examination.report.lines
        let commands = { (level: DoctorReport.Level, check: String) in
            lines.first { $0.level == level && $0.check == check }?.command
        }
        if examination.grant != nil { return failure == nil ? nil : "ringback doctor" }
        if let command = commands(.wrong, "program") ?? commands(.wrong, "configuration") { return command }
        if let command = commands(.wrong, "unit") ?? commands(.wrong, "socket") { return command }
        if failure != nil || lines.contains(where: { $0.level == .wrong && $0.check == "socket" }) {
            return "ringback doctor"
        }
        if isLocked { return "ringback unlock" }
        if let command = commands(.warning, "configuration") { return command }
        guard !accounts.isEmpty else { return "ringback account add" }
        if isAsleep { return "ringback accounts" }
        if let troubled = accounts.lazy.compactMap(\.remedy).first { return troubled }
        if !accounts.contains(where: \.isUsable), let account = signedOut {
            return ShownCommand("ringback login \(account.name)")
        }
        let open = lines.first { $0.level == .wrong } ?? lines.first { $0.level == .warning && $0.command != nil }
        if let command = open?.command { return command }
        return signedOut.map { ShownCommand("ringback login \($0.name)") }
    }

    /// The default account if it needs a sign-in, else the first one that does.
    private var signedOut: OverviewAccount? {
        accounts.first { $0.needsSignIn && $0.isDefault } ?? accounts.first(where: \.needsSignIn)
    }

    private var using: ShownCommand {
        let usable = accounts.filter(\.isUsable)
        let account = usable.first(where: \.isDefault) ?? usable.first
        return account.map { ShownCommand("ringback token \($0.name)") } ?? "ringback accounts"
    }

    /// Prints it, at most as many lines as the terminal has rows.
    func show() {
        let columns = (Console.Stream.output.columns ?? 80) - 1
        // One row stays for the shell's prompt.
        let rows = (Console.Stream.output.rows ?? 24) - 1
        var below = [""]
        if isAsleep {
            below += OverviewText.check(.good, "daemon", "It does not run; the first request starts it.", columns)
        }
        for check in checks {
            below += lines(of: check, columns)
            // An upgrade does not restart the daemon. The command for that is always shown, and never cut.
            if check.check == "version", let command = check.command, command != next {
                below.append("  → " + Style.bold.apply(command.description, on: .output))
            }
        }
        if let failure { below += OverviewText.check(.bad, "accounts", failure.detail, columns) }
        let word = needed == nil ? "Nothing to do. For a token: " : "Next: "
        below += ["", word + Style.bold.apply(next.description, on: .output)]
        let used = below.reduce(0) { $0 + 1 + TextWidth.of($1) / (columns + 1) }
        let above = OverviewText.accounts(accounts, rows: max(3, rows - used), columns: columns)
        for line in above + below { Output.line(line) }
    }

    /// The problems, and of the checks that passed only those that users ask about. At most 6.
    private var checks: [DoctorReport.Line] {
        let shown = examination.report.lines.filter { line in
            line.level != .ok || ["socket", "unit", "browser", "scheme"].contains(line.check)
        }
        guard shown.count > 6 else { return shown }
        let troubles =
            shown.filter { $0.level != .ok && $0.check == "version" }
            + shown.filter { $0.level != .ok && $0.check != "version" }
        let more = DoctorReport.Line(check: "more", level: .warning, message: "See all with: ringback doctor")
        return troubles.count > 6 ? troubles.prefix(5) + [more] : troubles
    }

    private func lines(of line: DoctorReport.Line, _ columns: Int) -> [String] {
        let mark: Mark = line.level == .ok ? .good : line.level == .warning ? .warning : .bad
        let label = ["socket": "daemon", "scheme": "links"][line.check] ?? line.check
        let subject = line.subject.map { "\($0.name): " } ?? ""
        return OverviewText.check(mark, label, subject + line.message, columns)
    }
}

struct OverviewAccount {
    let name: String
    private(set) var mark = Mark.neutral
    private(set) var state = "not known"
    private(set) var who = "-"
    private(set) var validity = "-"
    private(set) var problem: String?
    private(set) var remedy: ShownCommand?
    private(set) var isDefault = false
    private(set) var isUsable = false
    private(set) var needsSignIn = false

    /// An account of the configuration, about which no daemon was asked.
    init(unknown name: String) { self.name = name }

    init(reading document: JSON, isLocked: Bool) throws(RingbackError) {
        let account = try Account(reading: document)
        let isService = document["grant"] != nil
        name = account.name
        isDefault = account.isDefault
        isUsable = account.state.hasSession
        needsSignIn = account.state == .unauthenticated && account.needsSignIn
        // The overview says once that the vault is locked; here it is the state.
        let isWaiting = isLocked && account.state == .loading
        let error = isWaiting ? nil : account.problem
        problem = error.map(\.problemText) ?? ShowAccounts.notice(document, account)
        remedy = error.map { error in
            error.recovery == .signIn
                ? ShownCommand("ringback login \(account.name)") : ShownCommand("ringback doctor \(account.name)")
        }
        mark = problem != nil || account.isStale ? .warning : isUsable ? .good : isWaiting ? .bad : .neutral
        state = account.stateText(isLocked: isLocked)
        who = account.who ?? "-"
        validity = account.validity(isService: isService)
    }

    var title: String { TextWidth.cut(name, to: 18) + (isDefault ? " (default)" : "") }
}

enum OverviewText {
    static func accounts(_ accounts: [OverviewAccount], rows: Int, columns: Int) -> [String] {
        guard !accounts.isEmpty else { return ["No account is configured."] }
        let sorted = accounts.filter { $0.problem != nil } + accounts.filter { $0.problem == nil }
        // What a short terminal has no rows for is cut.
        let most = max(1, min(4, rows - 2))
        let problems = sorted.map { account in
            let text = account.problem.map { Sanitizer.line($0, limit: 400) } ?? ""
            let lines = TextWrap.wrapped(text, columns: columns - 4).split(separator: "\n").map { "    " + $0 }
            let rest = lines.dropFirst(most - 1).map { $0.dropFirst(4) }.joined(separator: " ")
            return lines.count <= most
                ? lines : lines.prefix(most - 1) + [TextWidth.cut("    " + rest, to: columns)]
        }
        let lines = problems.map { 1 + $0.count }
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
        var text = [Style.bold.apply(row(" ", ["ACCOUNT", "STATE", "WHO", "TOKEN VALID"]), on: .output)]
        for (account, problem) in zip(visible, problems) {
            let cells = [account.title, account.state, account.who, account.validity]
            text.append(row(account.mark.text(on: .output), cells))
            text += problem
        }
        if shown < sorted.count { text.append("  … and \(sorted.count - shown) more: ringback accounts") }
        return text
    }

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
