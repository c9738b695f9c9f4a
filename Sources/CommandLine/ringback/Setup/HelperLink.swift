import RingbackClient

/// A name by which a tool starts `ringback`: a link in `~/.local/bin`.
struct HelperLink {
    let home: String
    private let name: String
    private let target: String

    init(named name: String, target: String) throws(RingbackError) {
        guard let home = SocketPlace.variable("HOME"), home.hasPrefix("/") else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        self.home = home
        self.name = name
        self.target = target
    }

    var path: String { "\(home)/.local/bin/\(name)" }

    /// True if the tool finds this program by the name.
    var isFound: Bool { isFound(in: .own) }

    /// The same for a tool with another `PATH`.
    func isFound(in path: SearchPath) -> Bool { path.place(of: name).map(Programs.isSelf) == true }

    /// Makes the link, unless the name is found or the link is there.
    ///
    /// - Throws: `place_taken` if something else has its place.
    func change() throws(RingbackError) -> [SetupStep] {
        guard !isFound, !Programs.isSelf(path) else { return [] }
        guard !HomeFile.exists(path) else {
            throw RingbackError(
                "place_taken", "\(path) is no link to this program. Nothing was changed. Move it away.")
        }
        return [.link(path: path, target: target)]
    }

    /// Removes the link, if it leads to this program. What a package installed stays.
    func removal() -> [SetupStep] {
        Programs.isSelf(path) && HomeFile.state(of: path) == nil ? [.removeLink(path: path)] : []
    }

    /// What to say if a tool does not find the link.
    var notes: [String] {
        let folder = SetupStep.folder(of: path)
        return isFound || SearchPath.own.folders.contains(folder)
            ? [] : ["\(folder) is not in PATH, where the tools look for \(name)."]
    }

    /// What to say if the tool finds the link when a shell starts it, and not when the user manager does, as for a program
    /// of the desktop.
    func note(ofManager path: SearchPath) -> String? {
        guard let place = Tool.place(of: name), isFound, !isFound(in: path) else { return nil }
        let folder = SetupStep.folder(of: place)
        return "Programs that the desktop starts do not find \(name): \(folder) is not in the PATH of the user "
            + "manager. Write PATH=\(folder):$PATH into ~/.config/environment.d/path.conf, and log in again."
    }
}
