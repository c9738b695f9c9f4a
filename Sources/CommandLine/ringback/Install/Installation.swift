import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Installs Ringback in a home directory. Obstacles are found before anything is changed.
struct Installation {
    /// A file and what it is made of.
    private struct Item {
        let target: String
        let mode: mode_t
        let content: Content

        enum Content {
            case copy(of: String)
            case text(String)
            /// A symbolic link.
            case link(to: String)
        }
    }

    private static let programs = ["ringbackd", "ringback", "ringback-relay", "ringback-sandbox"]
    private static let pages = ["ringback.1", "ringback-relay.1", "ringback.toml.5", "ringbackd.8"]
    private static let completions: [(CompletionShell, path: String)] = [
        (.bash, "bash-completion/completions/ringback"), (.zsh, "zsh/site-functions/_ringback"),
        (.fish, "fish/vendor_completions.d/ringback.fish"),
    ]

    /// Names of other programs. They are not where the programs are, so that none takes another's place by itself.
    private static let names = ["keyring", "oidc-token"]

    private let places: InstallPlaces

    init(_ places: InstallPlaces) {
        self.places = places
    }

    func run() throws(RingbackError) {
        var list = try InstalledList(path: places.list)
        if let former = list.prefix, former != places.prefix {
            throw RingbackError(
                "install_failed", "Ringback is installed below \(former). Run: ringback install --undo")
        }
        let items = try plan()
        try refuseForeign(items, list)
        try refuseLiveDaemon()
        list.begin(prefix: places.prefix)
        try makeDirectory(holding: places.list, &list)
        for item in items { try put(item, &list) }
        try enable()
        explain()
    }

    // MARK: What goes where

    private func plan() throws(RingbackError) -> [Item] {
        guard let beside = Programs.ownDirectory else {
            throw RingbackError("install_failed", "/proc does not say where this program is.")
        }
        var items: [Item] = []
        for name in Installation.programs {
            let source = "\(beside)/\(name)"
            guard unsafe access(source, R_OK | X_OK) == 0 else {
                // The sandbox provider may be missing: it is for the demo and for tests.
                if name == "ringback-sandbox" { continue }
                throw RingbackError(
                    "install_failed", "\(name) is not beside this program, in \(beside): build it (make release) first."
                )
            }
            items.append(Item(target: "\(places.programs)/\(name)", mode: 0o755, content: .copy(of: source)))
        }
        for unit in UnitFiles.all {
            let text = UnitFiles.text(unit.text, programs: places.programs)
            items.append(Item(target: "\(places.units)/\(unit.name)", mode: 0o644, content: .text(text)))
        }
        for page in Installation.pages {
            let section = "man" + String(page.suffix(1))
            guard let source = Installation.page(page, section, around: beside) else { continue }
            let name = source.hasSuffix(".gz") ? page + ".gz" : page
            items.append(
                Item(target: "\(places.share)/man/\(section)/\(name)", mode: 0o644, content: .copy(of: source)))
        }
        for (shell, path) in Installation.completions {
            let text = Ringback.completionScript(for: shell)
            items.append(Item(target: "\(places.share)/\(path)", mode: 0o644, content: .text(text)))
        }
        for name in Installation.names {
            items.append(
                Item(target: "\(places.names)/\(name)", mode: 0o777, content: .link(to: "../../bin/ringback")))
        }
        return items.filter { item in
            switch item.content {
            // If this program runs from the place where it is installed, the programs are there already.
            case .copy(let source): !HomeFile.areSame(source, item.target)
            case .link: !HomeFile.areSame("\(places.programs)/ringback", item.target)
            case .text: true
            }
        }
    }

    /// A manual page, from the package or from the source tree.
    private static func page(_ name: String, _ section: String, around directory: String) -> String? {
        var above = directory
        for _ in 0..<5 {
            for place in ["share/man/\(section)/\(name)", "share/man/\(section)/\(name).gz", "man/\(name)"] {
                let path = "\(above)/\(place)"
                if HomeFile.state(of: path) != nil { return path }
            }
            guard let slash = above.lastIndex(of: "/") else { return nil }
            above = String(above[..<slash])
        }
        return nil
    }

    private func refuseForeign(_ items: [Item], _ list: InstalledList) throws(RingbackError) {
        let foreign = items.map(\.target).filter { HomeFile.exists($0) && !list.holds($0) }
        guard !foreign.isEmpty else { return }
        throw RingbackError(
            "install_failed",
            "Nothing was changed: \(foreign.joined(separator: ", ")) "
                + (foreign.count == 1 ? "is" : "are")
                + " not of ringback install, or changed since. Move that away, and run it again.")
    }

    /// Refuses if a daemon runs that was started by hand. systemd would take over its socket's path, and start a daemon
    /// that finds the state directory locked.
    private func refuseLiveDaemon() throws(RingbackError) {
        guard let runtime = SocketPlace.variable("XDG_RUNTIME_DIR"), runtime.hasPrefix("/"), UserManager.isThere,
            !UserManager.isActive("ringback.socket")
        else { return }
        let calls = BrokerCalls(socket: "\(runtime)/ringback/ringback.sock", application: "ringback install")
        guard let status = try? calls.call(.getStatus, timeout: .seconds(5)) else { return }
        let pid = status["pid"]?.integer.map { " (\(shown: "kill \($0)"))" } ?? ""
        throw RingbackError(
            "install_failed",
            "Nothing was changed: a daemon that systemd did not start answers already. End it\(pid), and run it again.")
    }

    // MARK: Doing it

    private func put(_ item: Item, _ list: inout InstalledList) throws(RingbackError) {
        try makeDirectory(holding: item.target, &list)
        let bytes: [UInt8]
        switch item.content {
        case .link(let target):
            // One that is there already is of an earlier installation.
            unsafe unlink(item.target)
            guard unsafe symlink(target, item.target) == 0 else { throw HomeFile.failure("make", item.target) }
            list.note(link: item.target, to: target)
            return try noted(item, list)
        case .text(let text): bytes = Array(text.utf8)
        case .copy(let source):
            guard let found = try HomeFile.contents(of: source) else {
                throw RingbackError("install_failed", "\(source) does not exist any more.")
            }
            bytes = found
        }
        try HomeFile.put(bytes, at: item.target, mode: item.mode)
        if item.mode == 0o755 { Installation.strip(item.target) }
        // Each file is listed as soon as it is written: an interrupted installation can be undone, or run again.
        list.note(item.target)
        try noted(item, list)
    }

    private func noted(_ item: Item, _ list: InstalledList) throws(RingbackError) {
        try list.save()
        Output.note("installed \(Sanitizer.line(item.target, limit: 4_000))")
    }

    /// Removes symbols and debug information from a program with strip(1), if that is installed. They are half of a
    /// release build's size. If strip fails, the program stays as it is.
    private static func strip(_ path: String) {
        guard Tool.isInstalled("strip"),
            let pid = Subprocess.start(["strip", "--strip-all", path], output: .nothing, errors: .nothing)
        else { return }
        Subprocess.wait(pid)
    }

    private func makeDirectory(holding path: String, _ list: inout InstalledList) throws(RingbackError) {
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        for made in try HomeFile.makeDirectories(directory) { list.note(directory: made) }
    }

    private func enable() throws(RingbackError) {
        guard UserManager.isThere else {
            Output.note(
                """
                Your systemd manager does not respond (systemctl --user), so nothing was enabled. To start the daemon:
                  \(shown: "\(places.programs)/ringbackd &")
                or later, where systemd runs:
                  systemctl --user daemon-reload && systemctl --user enable --now ringback.socket
                """)
            return
        }
        let runs = UserManager.isActive("ringback.service")
        guard try UserManager.order("daemon-reload"), try UserManager.order("enable", "--now", "ringback.socket") else {
            throw RingbackError(
                "install_failed",
                "The files are in their places, but systemd does not listen at the socket. "
                    + "See: systemctl --user status ringback.socket")
        }
        Output.note("enabled ringback.socket: the daemon starts with the first request")
        if runs { Output.note("The former daemon still runs: systemctl --user restart ringback.service") }
    }

    private func explain() {
        let path = SocketPlace.variable("PATH") ?? ""
        if !path.split(separator: ":").contains(Substring(places.programs)) {
            Output.note("\(Sanitizer.line(places.programs, limit: 4_000)) is not in your PATH: add it there.")
        }
        Output.note("To remove everything again: ringback install --undo")
    }
}
