import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// How things stand, for `ringback` without a verb: the accounts, what a sign-in needs, and the one next command. It
/// starts no daemon, and no provider is asked.
struct Overview {
    private var examination: DoctorExamination
    /// True if systemd listens at the socket and no daemon runs. A connection would start one.
    private let isAsleep: Bool
    private var accounts: [OverviewAccount] = []
    private var isLocked = false
    /// The accounts could not be read from the daemon.
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
        let lines = answer.output.split(separator: "\n")
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
            let configured = examination.configuration?["accounts"]?.array ?? []
            accounts = configured.compactMap { $0["name"]?.string }.map { OverviewAccount(unknown: $0) }
            return
        }
        do throws(RingbackError) {
            let status = try DaemonStatus(reading: calls.call(.getStatus, timeout: .seconds(5)))
            isLocked = status.isVaultLocked
            if isLocked {
                let reason = status.vaultLockReason.map { " \($0)" } ?? ""
                examination.report.add("vault", .wrong, "It is locked: no session is served.\(reason)")
            }
            for document in try calls.call(.listAccounts, timeout: .seconds(5))["accounts"]?.array ?? [] {
                accounts.append(try OverviewAccount(reading: document, isLocked: isLocked))
            }
        } catch {
            failure = error
        }
    }

    // MARK: The next command

    /// What to do next. Problems that prevent everything come first, then those of the accounts, then the others.
    var next: ShownCommand {
        let lines = examination.report.lines
        let commands = { (level: DoctorReport.Level, check: String) in
            lines.first { $0.level == level && $0.check == check }?.command
        }
        if examination.grant != nil { return failure == nil ? using : "ringback doctor" }
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
        return signedOut.map { ShownCommand("ringback login \($0.name)") } ?? using
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

    // MARK: The screen

    /// Prints it, at most as many lines as the terminal has rows.
    func show() {
        let columns = (Console.Stream.output.columns ?? 80) - 1
        // One row stays for the shell's prompt.
        let rows = (Console.Stream.output.rows ?? 24) - 1
        var below = [""]
        if isAsleep {
            below += OverviewText.check(
                .good, "daemon", "It does not run; the first request starts it.", columns)
        }
        for check in checks {
            below += lines(of: check, columns)
            // An upgrade does not restart the daemon. The command for that is always shown, and never cut.
            if check.check == "version", let command = check.command, command != next {
                below.append("  → " + Style.bold.apply(command.description, on: .output))
            }
        }
        if let failure { below += OverviewText.check(.bad, "accounts", failure.detail, columns) }
        below += ["", "Next: " + Style.bold.apply(next.description, on: .output)]
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
        let mark: Mark =
            switch line.level {
            case .ok: .good
            case .warning: .warning
            case .wrong: .bad
            }
        let label = ["socket": "daemon", "scheme": "links"][line.check] ?? line.check
        let subject = line.subject.map { "\($0.name): " } ?? ""
        return OverviewText.check(mark, label, subject + line.message, columns)
    }
}
