import Glibc
import RingbackClient
import Terminal

/// Takes away what `ringback install` has put there, and only that.
struct Removal {
    private let places: InstallPlaces

    init(_ places: InstallPlaces) {
        self.places = places
    }

    func run() throws(RingbackError) {
        let list = try InstalledList(path: places.list)
        guard !list.isEmpty else {
            Output.note("Nothing of ringback install is noted in \(shown(places.list)): there is nothing to undo.")
            return
        }
        let units = list.files.keys.filter { $0.hasPrefix(places.units + "/") }
        let isManaged = !units.isEmpty && UserManager.isThere
        if isManaged {
            // The socket first: a request that came between would start the daemon again.
            _ = try UserManager.order("disable", "--now", "ringback.socket")
            _ = try UserManager.order("stop", "ringback.service")
        }
        for path in list.files.keys.sorted() { remove(path, list) }
        unsafe unlink(places.list)
        // The innermost first; one that holds something else stays.
        for directory in list.directories.reversed() { unsafe rmdir(directory) }
        if isManaged { _ = try UserManager.order("daemon-reload") }
        Output.note("Accounts and sessions are left: ~/.config/ringback and ~/.local/state/ringback.")
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
