import CLinux
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

extension DoctorReport {
    /// Daemons on two hosts with one state directory would use up each other's refresh tokens.
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

    private static var usualState: String? {
        Files.place("RINGBACK_STATE") ?? Files.place("XDG_STATE_HOME").map { $0 + "/ringback" }
            ?? Files.place("HOME").map { $0 + "/.local/state/ringback" }
    }

    private static func kind(of path: String) -> UInt32? {
        var path = path
        while true {
            let kind = unsafe clinux_file_system(path)
            if kind != 0 { return kind }
            guard let slash = path.lastIndex(of: "/"), path != "/" else { return nil }
            path = slash == path.startIndex ? "/" : String(path[..<slash])
        }
    }

    mutating func lookAtPrograms(of configuration: JSON?) {
        for entry in configuration?.list("schemes") ?? [] {
            guard let name = entry["name"]?.string, let program = entry.texts("command").first,
                !Tool.isInstalled(program)
            else { continue }
            let message = "[schemes.\(name)] starts \(program), which does not exist or is not executable."
            add(
                Line(
                    check: "scheme", subject: ("scheme", name), level: .wrong, message: message,
                    command: "ringback config check"))
        }
    }

    mutating func lookAtFiles(of configuration: JSON?, _ answer: JSON?) {
        guard let readAt = answer?["configuration_read_at"]?.integer else { return }
        let entries = (configuration?["accounts"]?.array ?? []) + (configuration?["schemes"]?.array ?? [])
        var files = Set(entries.compactMap { AccountSource(of: $0)?.file })
        if let file = answer?["places"]?["configuration"]?.string { files.insert(file) }
        for file in files.sorted() where (DoctorReport.changedAt(file) ?? 0) > readAt {
            let message = "\(file) was changed after the daemon had read it."
            correct("configuration", .warning, message, command: "ringback reload")
        }
    }

    private static func changedAt(_ path: String) -> Int? {
        var facts = stat()
        return unsafe stat(path, &facts) == 0 ? facts.st_mtim.tv_sec : nil
    }

    mutating func lookAtBrowser() {
        if let stated = SocketPlace.variable("BROWSER"), !stated.isEmpty {
            let names = stated.split(separator: ":").map { String($0.split(separator: " ").first ?? "") }
            guard let found = names.first(where: Tool.isInstalled) else {
                let message = "BROWSER names a program that does not exist: \(stated)"
                return add("browser", .warning, message, command: "unset BROWSER")
            }
            return add("browser", .ok, "BROWSER names \(found).")
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
        if let named = Tool.run(["xdg-settings", "get", "default-web-browser"], within: .seconds(5))?.line {
            return add("browser", .ok, "The default browser is \(named).")
        }
        add(
            "browser", .warning, "No default browser is known: use ringback login --no-browser, or choose one.",
            command: "xdg-settings set default-web-browser firefox.desktop")
    }

    /// Checks that tools that were set up ask Ringback, and nothing before it. Other tools are not named.
    mutating func lookAtTools(of configuration: JSON?, manager: SearchPath?) {
        guard let configuration else { return }
        let origins = OriginEntry.all(in: configuration)
        for tool in ToolName.allCases {
            let standing = tool.readableStanding(for: origins)
            let notes = standing.notes.joined(separator: " ")
            switch standing.state {
            case .notInstalled, .notSetUp: break
            case .setUp where notes.isEmpty, .inPart where notes.isEmpty:
                let link = (try? tool.setup())?.linkInPath
                if let note = manager.flatMap({ link?.note(ofManager: $0) }) {
                    add("tool", .warning, "\(tool.rawValue): \(note)")
                } else {
                    let servers = standing.servers.joined(separator: ", ")
                    add("tool", .ok, "\(tool.rawValue) asks Ringback for \(servers).")
                }
            default:
                let text = standing.state == .unreadable ? notes : "\(tool.rawValue): \(notes)"
                add("tool", .warning, text, command: ShownCommand("ringback setup \(tool.rawValue)"))
            }
        }
    }
}

/// Behind a restricted socket only what it serves is checked: the files, units and browsers here are not the daemon's.
extension DoctorExamination {
    mutating func lookThrough(_ grant: JSON) throws(RingbackError) {
        guard let calls else { return }
        // The other end is not this machine. The account names that it sends become part of a command line.
        let shown = grant.texts("accounts").filter(RequestTarget.isAccountName)
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
            if isLocked, document?["state"]?.string == "loading" { continue }
            report.add(DoctorExamination.line(name, document))
        }
        report.add("elsewhere", .ok, "For everything else: \(Elsewhere.place) ringback doctor")
    }

    private static func line(_ name: String, _ account: JSON?) -> DoctorReport.Line {
        func line(_ level: DoctorReport.Level, _ message: String) -> DoctorReport.Line {
            .init(check: "session", subject: ("account", name), level: level, message: message)
        }
        guard let account, let state = account["state"]?.string else {
            return line(.warning, "The account is not configured any more where the daemon runs.")
        }
        if let error = RingbackError(reading: account["error"]) {
            let step = Failure(error: error, account: name).nextStep
            return line(.warning, error.detail + (step.map { " \($0)" } ?? ""))
        }
        if account.isTrue("stale") {
            return line(.warning, "The access token has expired, and the provider cannot be reached.")
        }
        guard Account.State(rawValue: state).hasSession else {
            return line(.warning, "The account is not signed in. \(Elsewhere.place) \(shown: "ringback login \(name)")")
        }
        return line(.ok, "The account is signed in.")
    }
}

/// Test links that are really sent: from here through the desktop to `ringback open`, to the daemon and back. Files
/// alone do not show whether that works: an opener may report success and start nothing.
struct SchemeTrips {
    struct Trip {
        let scheme: URLScheme
        let id: String
        let opener: Int32
        let end: ContinuousClock.Instant
    }

    let calls: BrokerCalls?
    let socket: String?
    let start: ShownCommand
    private(set) var trips: [Trip] = []

    /// The limit for a link on a busy machine.
    static let bound: Duration = .seconds(10)
    /// The limit after the opener has reported success.
    static let grace: Duration = .seconds(5)

    /// Makes the desktop open a link of each scheme whose handler is ringback, and reports the trouble of the others.
    mutating func begin(_ uses: [SchemeUse], _ report: inout DoctorReport) {
        guard !uses.isEmpty, let desktop = try? SchemeDesktop() else { return }
        for use in uses {
            if let warning = SchemeTrips.handlerTrouble(use, desktop) {
                report.add(warning)
            } else {
                launch(use.scheme, &report)
            }
        }
    }

    /// Why no link of the scheme is opened: it must not start another program.
    static func handlerTrouble(_ use: SchemeUse, _ desktop: SchemeDesktop) -> DoctorReport.Line? {
        let scheme = use.scheme
        let register = ShownCommand("ringback scheme register \(scheme.name)")
        guard let handler = desktop.handler(of: scheme) else {
            return .init(scheme, .wrong, "No program is registered for its links.", register)
        }
        guard let file = handler.ours, file.scheme == scheme else {
            let level: DoctorReport.Level = use.isUsed ? .wrong : .warning
            return .init(scheme, level, "Its links go to \(handler.name), not to ringback.", register)
        }
        guard Tool.isInstalled(file.program) else {
            return .init(scheme, .wrong, "Its links go to \(file.program), which does not exist.", register)
        }
        guard use.isUsed else {
            return .init(
                scheme, .warning, "Its links come to ringback, but no account uses it: they are rejected.",
                ShownCommand("ringback scheme unregister \(scheme.name)"))
        }
        return nil
    }

    private mutating func launch(_ scheme: URLScheme, _ report: inout DoctorReport) {
        guard let calls else {
            return report.add(.init(scheme, .warning, "Without a daemon its links cannot be tried.", start))
        }
        guard SchemeDesktop.hasSession else {
            return report.add(
                .init(
                    scheme, .warning,
                    "Its links could not be tried: there is no desktop session here (neither DISPLAY nor "
                        + "WAYLAND_DISPLAY is set). Run ringback doctor on the desktop."))
        }
        let link: JSON
        do throws(RingbackError) {
            link = try calls.call(.makeDiagnosticLink, body: ["scheme": .string(scheme.name)])
        } catch {
            // The daemon does not know the scheme yet, or too many links are being tested.
            return report.add(.init(scheme, .wrong, "Its links cannot be tried: \(error.detail)", "ringback reload"))
        }
        guard let id = link["id"]?.string, let url = link["url"]?.string else { return }
        let opener = Subprocess.start(
            ["xdg-open", url], output: .nothing, errors: .nothing, environment: SchemeTrips.environment(socket))
        guard let opener else {
            return report.add(
                .init(scheme, .wrong, "There is no xdg-open to open its links with.", "sudo apt install xdg-utils"))
        }
        trips.append(Trip(scheme: scheme, id: id, opener: opener, end: .now + SchemeTrips.bound))
    }

    /// The handler finds the daemon by itself. Only a socket that was named here has to be passed on.
    private static func environment(_ socket: String?) -> [String]? {
        socket.map { Programs.environment.merging(["RINGBACK_SOCK": $0]) { $1 }.map { "\($0)=\($1)" } }
    }

    func finish(_ report: inout DoctorReport) {
        guard let calls else { return }
        for trip in trips { report.add(wait(for: trip, calls)) }
    }

    private func wait(for trip: Trip, _ calls: BrokerCalls) -> DoctorReport.Line {
        func lost(_ message: String) -> DoctorReport.Line {
            let desktops = (SocketPlace.variable("XDG_CURRENT_DESKTOP") ?? "").split(separator: ":")
            let register = ShownCommand("ringback scheme register \(trip.scheme.name)")
            return .init(
                trip.scheme, .wrong, message, desktops.contains("KDE") ? "sudo apt install kde-cli-tools" : register)
        }
        var status: Int32?
        var end = trip.end
        while true {
            let answer = try? calls.call(.getDiagnosticLink, [trip.id], query: [("wait", "1")], timeout: .seconds(5))
            if answer?["arrived"]?.bool == true {
                // The opener may run as long as the program that it started.
                if status == nil { _ = Programs.ending(of: trip.opener, until: .now + .seconds(2)) }
                return SchemeTrips.arrived(trip.scheme, answer?["executable"]?.string)
            }
            if status == nil {
                status = Subprocess.endedStatus(trip.opener)
                if status == 0 { end = min(end, .now + SchemeTrips.grace) }
            }
            if let status, status != 0 {
                return lost("xdg-open cannot open its links: it ended with status \(status).")
            }
            if ContinuousClock.now >= end { break }
        }
        if status == nil {
            kill(-trip.opener, SIGKILL)
            Subprocess.wait(trip.opener)
            return lost("xdg-open did not open a link of it within \(SchemeTrips.bound.components.seconds) s.")
        }
        let desktop = SocketPlace.variable("XDG_CURRENT_DESKTOP") ?? ""
        return lost(
            "Its links are lost: xdg-open reported success, but no link reached ringback."
                + (desktop.isEmpty ? "" : " The desktop is \(desktop); its own opener may be missing."))
    }

    private static func arrived(_ scheme: URLScheme, _ executable: String?) -> DoctorReport.Line {
        guard let executable, !Programs.isSelf(executable) else {
            return .init(scheme, .ok, "A link that the desktop opened came back.")
        }
        return .init(
            scheme, .warning, "A link that the desktop opened came back through another program: \(executable)",
            ShownCommand("ringback scheme register \(scheme.name)"))
    }
}
