import CLinux
import Glibc
import RingbackClient
import StrictJSON
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
