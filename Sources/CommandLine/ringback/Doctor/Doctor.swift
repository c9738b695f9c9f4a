import ArgumentParser
import Confinement
import RingbackAPI
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

struct Doctor: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        abstract: "Find what prevents sign-ins, and say how to fix it.",
        discussion: """
            Asks the daemon, the accounts' providers, systemd and the desktop, each within a bound; changes nothing. Each \
            scheme is tried by a link that the desktop really opens. Exit status 0: nothing is wrong; 1: something is.
            """)

    @Argument(help: "Only this account and what it needs.", completion: Completions.accounts) var account: String?
    @OptionGroup var options: CallOptions

    func run() throws {
        var examination = DoctorExamination(account: account, socket: daemon.socket)
        try examination.run()
        examination.report.show(asJSON: json.isWanted)
        if !examination.report.isHealthy { throw ExitCode(ExitStatus.failed) }
    }
}

/// In the order of what the checks need: without a socket no daemon can be asked, and without a daemon no provider.
struct DoctorExamination {
    let account: String?
    let socket: String?
    var report = DoctorReport()
    private(set) var configuration: JSON?
    private(set) var calls: BrokerCalls?
    /// What the socket shows, if it is a restricted one. Its daemon may run on another machine.
    private(set) var grant: JSON?
    let hasManager: Bool
    /// Its `PATH`, which the programs of the desktop have.
    private let managerPath: SearchPath?

    init(account: String?, socket: String?) {
        self.account = account
        self.socket = socket
        let answer = Tool.systemctl("show-environment")
        hasManager = answer?.status == 0
        let lines = hasManager ? (answer?.text ?? "").split(separator: "\n") : []
        managerPath = lines.first { $0.hasPrefix("PATH=") }.map { SearchPath(String($0.dropFirst("PATH=".utf8.count))) }
    }

    mutating func run() throws(RingbackError) {
        lookAtSocket()
        if let grant { return try lookThrough(grant) }
        lookAtConfiguration()
        if let account, let configuration, ConfigurationCheck.account(account, in: configuration) == nil {
            throw UnknownAccount.error(account, in: configuration)
        }
        if account == nil {
            report.lookAtPrograms(of: configuration)
            report.lookAtTools(of: configuration, manager: managerPath)
            report.lookAtWall()
        }
        report.lookAtAITools(of: account)
        lookAtUnit()
        report.lookAtBrowser()
        tryBrowser()
        // The desktop opens the links while the daemon asks the providers.
        var trips = SchemeTrips(calls: calls, socket: socket, start: start)
        trips.begin(uses(), &report)
        let answer = askDaemon()
        report.lookAtHome(answer?["places"]?["state"]?.string, hasManager: hasManager)
        report.lookAtFiles(of: configuration, answer)
        trips.finish(&report)
    }

    /// Starts the browser for a page of the daemon's: one that is installed may still die at its start.
    private mutating func tryBrowser() {
        guard let calls, let line = report.lines.first(where: { $0.check == "browser" && $0.level == .ok }) else {
            return
        }
        let browser = AccountBrowser(of: account.flatMap { try? calls.account($0) }, by: calls)
        // An older daemon has no such page.
        guard let page = try? calls.call(.makeDiagnosticLink, body: ["scheme": "http"]), let id = page["id"]?.string,
            let url = page["url"]?.string
        else { return }
        guard let process = browser.start(url) else {
            return report.correct("browser", .warning, browser.notStarted(url))
        }
        var end = ContinuousClock.now + SchemeTrips.bound
        var hasEnded = false
        repeat {
            let answer = try? calls.call(.getDiagnosticLink, [id], query: [("wait", "1")], timeout: .seconds(5))
            if answer?["arrived"]?.bool == true {
                return report.correct("browser", .ok, "\(line.message) It has fetched a page of the daemon's.")
            }
            guard !hasEnded, let status = Subprocess.endedStatus(process) else { continue }
            hasEnded = true
            guard status == 0 else {
                let edit = browser.command == nil ? nil : account.map { ShownCommand("ringback account edit \($0)") }
                return report.correct(
                    "browser", .warning,
                    "\(browser.ended(status)) Name one that starts: browser in the account, or BROWSER.",
                    command: edit ?? "export BROWSER=PROGRAM")
            }
            end = min(end, .now + SchemeTrips.grace)
        } while ContinuousClock.now < end
        report.correct(
            "browser", .warning,
            "\(line.message) It was started, but has not fetched a page of the daemon's. If it is slow, or of another "
                + "user or machine, sign-ins may work all the same.")
    }

    /// If the daemon's socket unit is active already, the command that shows why it does not run.
    var start: ShownCommand {
        if let socket { return ShownCommand("ringbackd --socket=\(socket) &") }
        guard hasManager else { return "ringbackd &" }
        return Tool.systemctl("is-active", "--quiet", DoctorExamination.socketUnit)?.status == 0
            ? ShownCommand("systemctl --user status \(DoctorExamination.service)")
            : ShownCommand("systemctl --user enable --now \(DoctorExamination.socketUnit)")
    }

    func uses() -> [SchemeUse] {
        // Without the configuration it is not known which schemes are used, so none is reported.
        guard configuration != nil else { return [] }
        let registered = (try? SchemeDesktop())?.registry.registered ?? []
        let all = SchemeUse.all(configuration, registered)
        return account.map { name in all.filter { $0.accounts.contains(name) } } ?? all
    }

    mutating func lookAtSocket() {
        let path: String
        do throws(RingbackError) {
            path = try SocketPlace.path(stated: socket)
        } catch {
            let command: ShownCommand? = SocketPlace.hasSystemd ? "export XDG_RUNTIME_DIR=/run/user/$(id -u)" : nil
            return report.add("socket", .wrong, error.detail, command: command)
        }
        let calls = BrokerCalls(socket: path, application: "ringback")
        do throws(RingbackError) {
            let answer = try calls.call(.getStatus, timeout: .seconds(5))
            let status = try DaemonStatus(reading: answer)
            grant = answer["exposed_socket"]
            let pid = status.pid.map { ", pid \($0)" } ?? ""
            let what = Elsewhere.restriction(grant).map { "A restricted socket answers at \(path), \($0)." }
            report.add("socket", .ok, what ?? "The daemon answers at \(path)\(pid).")
            self.calls = calls
            let build = try DaemonBuild(reading: answer, socket: socket)
            if let difference = build.difference {
                let restart = build.restart
                let step = restart.advice.map { " \($0)" } ?? ""
                report.add("version", .warning, difference + step, command: restart.command)
            } else {
                report.add("version", .ok, "ringback and ringbackd are of version \(build.name).")
            }
            // A restricted socket does not tell.
            if let confinement = answer["confinement"] {
                let reason = confinement["reason"]?.string
                report.add(
                    "seccomp", reason == nil ? .ok : .warning,
                    reason.map { "The kernel does not confine the daemon: \($0)." }
                        ?? "The kernel lets the daemon start no program.")
            }
        } catch {
            switch error.kind {
            // The directory of the socket is another user's: no command of this user helps.
            case .noDaemon where error.advice != nil, .foreignServer where error.advice != nil:
                report.add("socket", .wrong, "\(error.detail) \(error.advice ?? "")")
            case .noDaemon where Wall.lacksSocket:
                report.add(
                    "socket", .wrong, "This command was started without an account: start it with one, outside.",
                    command: Wall.withAccount)
            case .noDaemon:
                report.add("socket", .wrong, error.detail, command: start)
                report.lookAtDaemonProgram()
            case .foreignServer: report.add("socket", .wrong, error.detail, command: "ls -l \(path)")
            default:
                let restart = ShownCommand("systemctl --user restart \(DoctorExamination.service)")
                report.add(
                    "socket", .wrong, "The daemon at \(path) does not respond correctly: \(error.detail)",
                    command: grant == nil && hasManager ? restart : nil)
                report.lookAtDaemonProgram()
            }
        }
    }

    private mutating func askDaemon() -> JSON? {
        guard let calls else { return nil }
        do throws(RingbackError) {
            // Longer than the daemon's own limits for its requests to providers.
            let answer = try calls.call(.getDiagnostics, query: [("account", account)], timeout: .seconds(30))
            for place in answer["places"]?.object?.members ?? [] {
                report.add("place", .ok, "\(place.name): \(place.value.string ?? "")")
            }
            for check in answer.list("checks") { report.add(reading: check) }
            return answer
        } catch {
            report.add(
                "daemon", .wrong, "The daemon's own findings cannot be read: \(error.detail)",
                command: hasManager
                    ? ShownCommand("systemctl --user status \(DoctorExamination.service)") : "ringback status")
            return nil
        }
    }

    mutating func lookAtConfiguration() {
        do throws(RingbackError) {
            configuration = try ConfigurationCheck.run(config: nil)
        } catch {
            // ringbackd reads the configuration: if it cannot start, nothing is known of that.
            guard !report.lines.contains(where: { $0.check == "program" }) else { return }
            let mistakes = Failure.mistakes(error["errors"])
            let more = mistakes.count > 1 ? ", and \(mistakes.count - 1) more" : ""
            let text = mistakes.first.map { $0 + more } ?? error.detail
            return report.add("configuration", .wrong, text, command: "ringback config check")
        }
        let names = Set(configuration?.names("accounts") ?? [])
        let known = try? calls?.call(.listAccounts, timeout: .seconds(5))
        guard known.map({ Set($0.names("accounts")) }) ?? names == names else {
            return report.add(
                "configuration", .warning, "The daemon's accounts differ from the files: it has not read a change yet.",
                command: "ringback reload")
        }
        let text =
            names.isEmpty
            ? "It has no accounts. Add one: \(shown: AccountAdd.command)"
            : names.count == 1 ? "It has 1 account." : "It has \(names.count) accounts."
        report.add("configuration", .ok, text)
    }

    private static let socketUnit = "ringback.socket"
    static let service = "ringback.service"

    mutating func lookAtUnit() {
        let unit = DoctorExamination.socketUnit
        let service = DoctorExamination.service
        guard hasManager else {
            return report.add(
                "unit", .warning, "There is no systemd user manager: something else must start ringbackd.",
                command: calls == nil ? "ringbackd &" : nil)
        }
        // The socket may be active although the service fails. Then every request tries to start it in vain.
        if Tool.systemctl("is-failed", service)?.line == "failed" {
            return report.add(
                "unit", .wrong, "\(service) cannot start.",
                command: ShownCommand("journalctl --user -u \(service) -n 20"))
        }
        // `systemctl` prints the state. Its exit status only says whether that is a good state.
        let enabled = Tool.systemctl("is-enabled", unit)?.line ?? "not-found"
        let active = Tool.systemctl("is-active", unit)?.line ?? "unknown"
        switch (enabled, active) {
        case ("enabled", "active"), ("enabled-runtime", "active"), ("static", "active"), ("linked", "active"):
            report.add("unit", .ok, "\(unit) is enabled and active.")
        case ("not-found", _):
            report.add(
                "unit", .warning,
                "\(unit) is not installed, so the daemon does not start by itself: install the package, or run the "
                    + "tarball's ./install.")
        case (_, "active"):
            report.add(
                "unit", .warning, "\(unit) is active, but \(enabled): it will not be there after the next login.",
                command: ShownCommand("systemctl --user enable \(unit)"))
        default:
            report.add(
                "unit", .warning, "\(unit) is \(active) and \(enabled): the daemon does not start by itself.",
                command: ShownCommand("systemctl --user enable --now \(unit)"))
        }
    }
}

struct DoctorReport {
    enum Level: String {
        case ok, warning, wrong

        var style: Style { self == .ok ? .green : self == .warning ? .yellow : .red }
    }

    struct Line {
        let check: String
        var subject: (kind: String, name: String)?
        let level: Level
        let message: String
        var command: ShownCommand?
    }

    private(set) var lines: [Line] = []

    var isHealthy: Bool { !lines.contains { $0.level == .wrong } }

    mutating func add(_ line: Line) { lines.append(line) }

    mutating func add(_ check: String, _ level: Level, _ message: String, command: ShownCommand? = nil) {
        add(Line(check: check, level: level, message: message, command: command))
    }

    /// This program needs nothing of the system but its kernel; the daemon needs OpenSSL 3 and the C library, and where
    /// they are missing or too old, the loader ends it before its first line.
    mutating func lookAtDaemonProgram() {
        let answer = Tool.run([Programs.path("ringbackd"), "--version"], errors: .joined)
        guard let answer, answer.status != 0 else { return }
        let said = answer.text.split(separator: "\n").last.map { String($0) } ?? "exit status \(answer.status)"
        let lacksOpenSSL = said.contains("libcrypto.so.3")
        let lacksLibrary = said.contains("GLIBC_") ? "it needs glibc 2.36 or newer (\(said))" : said
        let reason = lacksOpenSSL ? "this system has no usable OpenSSL 3 (\(said))" : lacksLibrary
        let command: ShownCommand? = lacksOpenSSL ? "sudo apt install libssl3" : nil
        add("program", .wrong, "ringbackd cannot start: \(reason).", command: command)
    }

    /// A check that passed is replaced by what was found later.
    mutating func correct(_ check: String, _ level: Level, _ message: String, command: ShownCommand? = nil) {
        guard let index = lines.firstIndex(where: { $0.check == check && $0.level == .ok }) else { return }
        lines[index] = Line(check: check, level: level, message: message, command: command)
    }

    /// Adds a check of the daemon's. A level that only a newer daemon knows counts as wrong.
    mutating func add(reading json: JSON) {
        guard let check = json["check"]?.string, let message = json["message"]?.string else { return }
        let account = json["account"]?.string
        let command =
            json.object.flatMap { AccountRegistration.repetition(of: account ?? "", $0) ?? CauseAdvice.remedy($0) }
            ?? DoctorReport.command(check, json)
        let level = json["level"]?.string.flatMap(Level.init) ?? .wrong
        let subject = account.map { (kind: "account", name: $0) }
        add(Line(check: check, subject: subject, level: level, message: message, command: command))
    }

    private static func command(_ check: String, _ finding: JSON) -> ShownCommand? {
        let (isOfAccount, isOfSetting) = (finding["account"] != nil, finding["setting"]?.string != nil)
        let scope = finding["scope"]?.string
        let account = finding["account"]?.string.flatMap { RequestTarget.isAccountName($0) ? $0 : nil } ?? "ACCOUNT"
        let edit = ShownCommand("ringback account edit \(account)")
        return switch finding.object?.cause {
        // The provider responds, and a setting of the account is wrong.
        case .badResponse where isOfSetting, .wrongScheme where isOfAccount, .clientRefused: edit
        case .unreachable, .untrusted, .wrongScheme, .badResponse: request(finding)
        case .configuration where isOfAccount && isOfSetting: edit
        case .configuration, .schemeNotReserved: "ringback config check"
        case .clockDiffers: "timedatectl set-ntp true"
        case .callbackIsPasted: "ringback complete"
        case .portTaken: "ss -ltnp"
        case .sessionStale: ShownCommand("ringback refresh \(account)")
        case .signInNeeded where scope != nil: ShownCommand("ringback login \(account) --scopes=\(scope ?? "")")
        // The session that is held has nothing wrong, but its tokens are of no use to the server.
        case .signInNeeded where ["discovery", "client", "provider"].contains(check):
            ShownCommand("ringback login \(account) --again")
        case .signInNeeded: ShownCommand("ringback login \(account)")
        case .vaultLocked: "ringback unlock"
        case .keySourceDiffers: "ringback status"
        case .notJoined, .noHostsKey: "ringback vault join"
        case .vaultInMemory: "systemctl --user restart ringback.service"
        case .notExposed: "ringback expose list"
        case .fileNotKept: "ringback files"
        default: nil
        }
    }

    /// The same request as the daemon's: through the same proxy, with the same certificates.
    private static func request(_ check: JSON) -> ShownCommand? {
        guard let url = check["url"]?.string else { return nil }
        var words = ["curl", "-v"]
        if let proxy = check["proxy"]?.string { words += proxy == "none" ? ["--noproxy", "*"] : ["--proxy", proxy] }
        if let file = check["ca_file"]?.string { words += ["--cacert", file] }
        return ShownCommand(words: words + [url])
    }

    func show(asJSON: Bool) {
        guard !asJSON else { return Output.json(json) }
        for line in lines {
            let subject = line.subject.map { " \(Sanitizer.line($0.name, limit: 64))" } ?? ""
            let level = line.level.rawValue
            let text = TextWrap.wrapped(
                "\(level.padded(to: 9))\(Sanitizer.line(line.check))\(subject): "
                    + Sanitizer.line(line.message, limit: 500), columns: Console.Stream.output.columns, indent: 9)
            Output.line(line.level.style.apply(level, on: .output) + text.dropFirst(level.count))
            if let command = line.command {
                Output.line("         → \(Style.bold.apply(command.description, on: .output))")
            }
        }
        Output.line(summary)
    }

    private var summary: String {
        let (wrong, warnings) = (lines.count { $0.level == .wrong }, lines.count { $0.level == .warning })
        let tail = warnings == 0 ? "" : warnings == 1 ? " 1 warning." : " \(warnings) warnings."
        let head = wrong == 0 ? "Nothing is" : wrong == 1 ? "1 thing is" : "\(wrong) things are"
        return "\(head) wrong.\(tail)"
    }

    private var json: JSON {
        let checks = lines.map { line -> JSONObject in
            [
                "check": line.check, line.subject?.kind ?? "": line.subject?.name, "level": line.level.rawValue,
                "message": line.message, "command": line.command?.description,
            ]
        }
        return .object(["healthy": isHealthy, "checks": checks])
    }
}

extension DoctorReport.Line {
    init(_ scheme: URLScheme, _ level: DoctorReport.Level, _ message: String, _ command: ShownCommand? = nil) {
        self.init(check: "scheme", subject: ("scheme", scheme.name), level: level, message: message, command: command)
    }
}
