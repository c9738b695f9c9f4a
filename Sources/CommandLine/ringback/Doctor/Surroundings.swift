import CLinux
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// What a sign-in needs of the machine besides the daemon.
extension DoctorReport {
    /// Checks that the state directory is on a local disk. Daemons on two hosts with one state directory would use up
    /// each other's refresh tokens.
    ///
    /// - Parameter stated: the state directory of the running daemon; nil if none responds.
    mutating func lookAtHome(_ stated: String?, hasManager: Bool) {
        guard let state = stated ?? DoctorReport.usualState else {
            return add("home", .warning, "HOME is not set: there is no place for the state.", command: "export HOME=~")
        }
        guard let kind = DoctorReport.kind(of: state) else {
            return add("home", .warning, "It cannot be told what disk \(state) is on.", command: "df \(state)")
        }
        guard let warning = StateDisk.warning(state, kind: kind) else {
            return add("home", .ok, "\(state) is on a disk of this machine.")
        }
        add(
            "home", .warning, warning,
            command: hasManager ? "systemctl --user edit ringback.service" : "ringbackd --help")
    }

    /// The state directory that a daemon started from here would have.
    private static var usualState: String? {
        func stated(_ name: String) -> String? {
            SocketPlace.variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        return stated("RINGBACK_STATE") ?? stated("XDG_STATE_HOME").map { $0 + "/ringback" }
            ?? stated("HOME").map { $0 + "/.local/state/ringback" }
    }

    /// The file system of a path, or of its nearest directory that exists.
    private static func kind(of path: String) -> UInt32? {
        var path = path
        while true {
            let kind = unsafe clinux_file_system(path)
            if kind != 0 { return kind }
            guard let slash = path.lastIndex(of: "/"), path != "/" else { return nil }
            path = slash == path.startIndex ? "/" : String(path[..<slash])
        }
    }

    /// Checks the programs that links start.
    mutating func lookAtPrograms(of configuration: JSON?) {
        for entry in configuration?["schemes"]?.array ?? [] {
            guard let name = entry["name"]?.string, let program = entry["command"]?.array?.first?.string,
                !Tool.isInstalled(program)
            else { continue }
            add(
                Line(
                    check: "scheme", subject: ("scheme", name), level: .wrong,
                    message: "[schemes.\(name)] starts \(program), which does not exist or is not executable.",
                    command: "ringback config check"
                ))
        }
    }

    /// Reports files that were changed after the daemon had read them.
    mutating func lookAtFiles(of configuration: JSON?, _ answer: JSON?) {
        guard let readAt = answer?["configuration_read_at"]?.integer else { return }
        let entries = (configuration?["accounts"]?.array ?? []) + (configuration?["schemes"]?.array ?? [])
        var files = Set(entries.compactMap { AccountSource(of: $0)?.file })
        if let file = answer?["places"]?["configuration"]?.string { files.insert(file) }
        for file in files.sorted() where (DoctorReport.changedAt(file) ?? 0) > readAt {
            correct(
                "configuration", .warning, "\(file) was changed after the daemon had read it.",
                command: "ringback reload")
        }
    }

    /// Unix seconds.
    private static func changedAt(_ path: String) -> Int? {
        var facts = stat()
        return unsafe stat(path, &facts) == 0 ? facts.st_mtim.tv_sec : nil
    }

    /// Checks that a browser can be started: sign-in pages need one.
    mutating func lookAtBrowser() {
        if let stated = SocketPlace.variable("BROWSER"), !stated.isEmpty {
            let names = stated.split(separator: ":").map { String($0.split(separator: " ").first ?? "") }
            if let found = names.first(where: { Tool.isInstalled($0) }) {
                return add("browser", .ok, "BROWSER names \(found).")
            }
            return add(
                "browser", .warning, "BROWSER names a program that does not exist: \(stated)", command: "unset BROWSER")
        }
        guard Display.hasBrowser else {
            return add(
                "browser", .warning,
                "There is no display here and no BROWSER: sign in with a code on another device, or open the page's "
                    + "address yourself.")
        }
        guard Tool.isInstalled("xdg-open") else {
            return add(
                "browser", .warning, "There is no xdg-open to open pages with: use ringback login --no-browser.",
                command: "sudo apt install xdg-utils")
        }
        let named = Tool.run(["xdg-settings", "get", "default-web-browser"], within: .seconds(5))?.line
        if let named {
            add("browser", .ok, "The default browser is \(named).")
        } else {
            add(
                "browser", .warning, "No default browser is known: use ringback login --no-browser, or choose one.",
                command: "xdg-settings set default-web-browser firefox.desktop")
        }
    }
}

/// The tools that ask Ringback for tokens.
extension DoctorReport {
    /// Checks that tools that were set up ask Ringback, and nothing before it. Other tools are not named.
    ///
    /// - Parameter manager: the `PATH` of the user manager; nil if there is none.
    mutating func lookAtTools(of configuration: JSON?, manager: SearchPath?) {
        guard let configuration else { return }
        let targets = SetupTargets(in: configuration)
        for tool in ToolName.allCases {
            let command = ShownCommand("ringback setup \(tool.rawValue)")
            do throws(RingbackError) {
                let standing = try tool.standing(for: targets)
                switch standing.state {
                case .notInstalled, .notSetUp: break
                case .setUp where standing.notes.isEmpty, .inPart where standing.notes.isEmpty:
                    let link = try tool.setup().linkInPath
                    if let note = manager.flatMap({ link?.note(ofManager: $0) }) {
                        add("tool", .warning, "\(tool.rawValue): \(note)")
                    } else {
                        let servers = standing.servers.joined(separator: ", ")
                        add("tool", .ok, "\(tool.rawValue) asks Ringback for \(servers).")
                    }
                default:
                    add(
                        "tool", .warning, "\(tool.rawValue): \(standing.notes.joined(separator: " "))", command: command
                    )
                }
            } catch {
                add("tool", .warning, "\(tool.rawValue): \(error.detail)", command: command)
            }
        }
    }
}

/// The checks behind a restricted socket: what it serves, and nothing of this machine. The files, units and browsers
/// here are not the daemon's.
extension DoctorExamination {
    /// - Throws: `account_not_found` for an account that the socket does not show, and any error of the socket itself.
    mutating func lookThrough(_ grant: JSON) throws(RingbackError) {
        guard let calls else { return }
        // The other end is not this machine. The account names that it sends become part of a command line.
        let shown = (grant["accounts"]?.array ?? []).compactMap(\.string).filter(RequestTarget.isAccountName)
        if let account, !shown.contains(account) {
            throw RingbackError(
                .policyDenied,
                "This restricted socket does not show \(account), only \(shown.joined(separator: ", ")).")
        }
        let status = try calls.call(.getStatus, timeout: .seconds(5))
        let isLocked = status["vault"]?["locked"]?.bool == true
        if isLocked {
            report.add(
                "vault", .warning, "The vault is locked: no session is served. \(Elsewhere.place) ringback unlock")
        }
        let known = try calls.call(.listAccounts, timeout: .seconds(5))["accounts"]?.array ?? []
        for name in shown where account.map({ $0 == name }) ?? true {
            let document = known.first { $0["name"]?.string == name }
            // That the vault is locked is said once.
            if isLocked, document?["state"]?.string == "loading" { continue }
            report.add(DoctorExamination.line(name, document))
        }
        report.add("elsewhere", .ok, "For everything else: \(Elsewhere.place) ringback doctor")
    }

    private static func line(_ name: String, _ account: JSON?) -> DoctorReport.Line {
        func line(_ level: DoctorReport.Level, _ message: String) -> DoctorReport.Line {
            DoctorReport.Line(check: "session", subject: ("account", name), level: level, message: message)
        }
        guard let account, let state = account["state"]?.string else {
            return line(.warning, "The account is not configured any more where the daemon runs.")
        }
        if let error = RingbackError(reading: account["error"]) {
            let step = Failure(error, account: name).nextStep
            return line(.warning, error.detail + (step.map { " \($0)" } ?? ""))
        }
        if account["stale"]?.bool == true {
            return line(.warning, "The access token has expired, and the provider cannot be reached.")
        }
        guard ["authenticated", "refreshing"].contains(state) else {
            return line(.warning, "The account is \(state). \(Elsewhere.place) \(shown: "ringback login \(name)")")
        }
        return line(.ok, "The account is \(state).")
    }
}
