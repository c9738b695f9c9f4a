import Glibc
import RingbackClient
import Terminal

/// Removes what `ringback install` has installed, and nothing else; with `--purge` also what the daemon made.
struct Removal {
    private let places: InstallPlaces
    private let purges: Bool

    init(_ places: InstallPlaces, purges: Bool) {
        self.places = places
        self.purges = purges
    }

    func run() throws(RingbackError) {
        let list = try InstalledList(path: places.list)
        if list.isEmpty {
            Output.note("\(shown(places.list)) lists nothing of ringback install: there is nothing to undo.")
        } else {
            try undo(list)
        }
        if purges { try purge() }
        tellOfRest()
    }

    private func undo(_ list: InstalledList) throws(RingbackError) {
        let units = list.files.keys.filter { $0.hasPrefix(places.units + "/") }
        let isManaged = !units.isEmpty && UserManager.isThere
        if isManaged {
            // The socket first: a request in between would start the daemon again.
            _ = try UserManager.order("disable", "--now", "ringback.socket")
            _ = try UserManager.order("stop", "ringback.service")
        }
        // systemd does not end a daemon that was started by hand.
        RunningDaemon.find()?.end(ifRunsFrom: "\(list.prefix ?? places.prefix)/bin/ringbackd")
        for path in list.paths { remove(path, list) }
        unsafe unlink(places.list)
        // The innermost first. A directory that is not empty stays.
        for directory in list.directories.reversed() { unsafe rmdir(directory) }
        if isManaged { _ = try UserManager.order("daemon-reload") }
    }

    /// Removes sessions and keys. They cannot be restored.
    private func purge() throws(RingbackError) {
        let places = [places.state, places.keys].filter { HomeFile.exists($0) }
        guard !places.isEmpty else {
            forgetSetup()
            return Output.note("There are no sessions and no keys to remove.")
        }
        if let daemon = RunningDaemon.find() {
            throw RingbackError(
                "install_failed",
                "Sessions and keys were left: a daemon still runs. End it (\(shown: "kill \(daemon.pid)")) first."
            )
        }
        let question =
            "Remove \(places.map(shown).joined(separator: " and "))? The sessions in there are lost, and they are not "
            + "revoked at their providers (ringback logout --all revokes them)."
        guard Prompt.confirm(question) else { return Output.note("Sessions and keys were left.") }
        for place in places {
            FileTree.remove(place)
            Output.note("\(HomeFile.exists(place) ? "ringback: cannot remove" : "removed") \(shown(place))")
        }
        forgetSetup()
        // The directory that held the keys, if it is empty.
        unsafe rmdir(String(self.places.keys.dropLast("/keys".count)))
    }

    /// Removes the list of what `ringback setup` wrote.
    private func forgetSetup() {
        guard unsafe unlink(places.setup) == 0 else { return }
        Output.note("removed \(shown(places.setup))")
    }

    private func tellOfRest() {
        let rest = [
            (places.configuration, "the accounts"), (places.state, "the vault with the sessions"),
            (places.keys, "the vault's key"),
        ].filter { HomeFile.exists($0.0) }
        guard !rest.isEmpty else { return }
        Output.note("Left: " + rest.map { "\(shown($0.0)) (\($0.1))" }.joined(separator: ", ") + ".")
        if !purges, HomeFile.exists(places.state) || HomeFile.exists(places.keys) {
            Output.note("To remove sessions and keys too: ringback install --undo --purge")
        }
    }

    private func remove(_ path: String, _ list: InstalledList) {
        guard HomeFile.exists(path) else { return }
        guard list.holds(path) else {
            Output.note("left, since it was changed: \(shown(path))")
            return
        }
        if unsafe unlink(path) == 0 {
            Output.note("removed \(shown(path))")
        } else {
            let reason = unsafe String(cString: strerror(errno))
            Output.note("ringback: cannot remove \(shown(path)): \(reason)")
        }
    }

    private func shown(_ path: String) -> String { Sanitizer.line(path, limit: 4_000) }
}
