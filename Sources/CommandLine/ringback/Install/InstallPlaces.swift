import FilePaths
import Glibc
import RingbackClient

/// Where an installation in a home directory goes, and where the list of its files is.
struct InstallPlaces {
    /// What `bin` and `share` are below.
    let prefix: String
    /// Where systemd looks for units of the user's own.
    let units: String
    /// The daemon's configuration, its vault, and the vault's key: what `--undo` leaves.
    let configuration: String
    let state: String
    let keys: String
    /// The list of what `ringback setup` wrote.
    let setup: String
    /// The list of what was installed. Always at the same place, so that `--undo` needs no `--prefix`.
    let list: String

    init(prefix stated: String?) throws(RingbackError) {
        guard let home = InstallPlaces.directory("HOME") else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        try InstallPlaces.refuseForeign(home)
        if let stated {
            prefix = try InstallPlaces.whole(stated)
        } else {
            prefix = home + "/.local"
        }
        let configuration = InstallPlaces.directory("XDG_CONFIG_HOME") ?? home + "/.config"
        let data = InstallPlaces.directory("XDG_DATA_HOME") ?? home + "/.local/share"
        units = configuration + "/systemd/user"
        list = data + "/ringback/installed"
        self.configuration = configuration + "/ringback"
        state = (InstallPlaces.directory("XDG_STATE_HOME") ?? home + "/.local/state") + "/ringback"
        keys = data + "/ringback/keys"
        setup = data + "/ringback/setup"
        for path in [prefix, units, list] {
            // The paths become lines of the list and of a unit.
            guard path.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
                throw RingbackError("no_place", "A directory with a control character in its name is not installed in.")
            }
        }
    }

    var programs: String { prefix + "/bin" }
    var share: String { prefix + "/share" }
    /// The links with names of other programs.
    var names: String { prefix + "/lib/ringback" }

    /// A variable that names an absolute directory; the base directory specification says to ignore others.
    private static func directory(_ name: String) -> String? {
        guard var path = SocketPlace.variable(name), path.hasPrefix("/") else { return nil }
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    /// Under `sudo`, HOME may belong to another user. That user could not change or remove what root writes there, and
    /// `systemctl` would talk to root's manager.
    static func refuseForeign(_ home: String) throws(RingbackError) {
        var status = stat()
        guard unsafe stat(home, &status) == 0, status.st_uid != geteuid() else { return }
        throw RingbackError(
            "no_place",
            "Nothing was changed: HOME is \(home), which belongs to uid \(status.st_uid), and this runs as uid "
                + "\(geteuid()). Run it as the user whose home it is, without sudo.")
    }

    private static func whole(_ path: String) throws(RingbackError) -> String {
        guard let path = Path.absolute(path) else {
            throw RingbackError(
                .systemError, "The working directory was deleted. Name the prefix by its absolute path.")
        }
        // Without `.` and `..`, since the list and the units contain it.
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }
}
