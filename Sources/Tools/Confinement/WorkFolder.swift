internal import CLinux
import Glibc

/// The folder that a confined program may write to. What git and editors find there runs outside, with all rights of the
/// user: such files are read-only inside, as far as they exist when the program starts, and what was made or changed all
/// the same is named at the end.
public struct WorkFolder: Sendable {
    /// The folder itself, by its real path.
    public let own: Pinned
    public var path: String { own.path }
    /// Mounted on themselves, so that they cannot be renamed out of the way: the folders of git.
    public let fixed: [Pinned]
    /// Read-only.
    public let protected: [Pinned]
    /// The state of what runs outside, before the program started.
    private let former: [String: String]

    /// Names in the folder itself that programs outside run or read as configuration. A Makefile or a package's scripts
    /// are not among them: they are what the program works on, and run only if the user says so.
    private static let names = [".envrc", ".vscode", ".idea", ".mcp.json", ".claude", ".codex"]
    /// Looked at in the end only.
    private static let watched = [
        ".husky", ".githooks", ".pre-commit-config.yaml", ".gitmodules", ".cursor", ".devcontainer", ".yarnrc.yml",
        "mise.toml", ".mise.toml",
    ]
    /// Where other programs put their sockets and files: such a folder as a whole is no project.
    private static let shared = ["/", "/tmp", "/var", "/var/tmp", "/dev/shm", "/home", "/srv", "/mnt", "/media"]
    private let kept: [String]

    /// - Parameters:
    ///   - path: a path.
    ///   - what: what it is, for messages.
    ///   - kept: folders and files of Ringback that may not be in it or above it.
    public init(
        _ path: String, as what: String = "The work folder", home: String, kept: [String]
    ) throws(Wall.Failure) {
        guard let real = Path(path).real, Path(real).kind == .folder else {
            throw Wall.Failure("\(what) \(path) does not exist.")
        }
        let homes = [home, Path(home).real ?? home]
        guard !WorkFolder.shared.contains(real), !homes.contains(where: { $0 == real || $0.hasPrefix(real + "/") })
        else {
            throw Wall.Failure(
                "\(what) would be \(real), which has more in it than one project: your home directory, or what other "
                    + "programs keep there. Choose the folder of a project.")
        }
        // With the links that lead there: a command that could change a link would replace the files behind it.
        self.kept = kept.flatMap { [$0, Route($0).end] + Route($0).links }
        for place in self.kept {
            guard place != real, !place.hasPrefix(real + "/"), !real.hasPrefix(place + "/") else {
                throw Wall.Failure(
                    "\(what) would be \(real), and \(place) is Ringback's own. Choose the folder of a project.")
            }
        }
        for folder in ["/usr", "/etc", "/proc", "/sys", "/dev", "/run", "/boot"] {
            guard real != folder, !real.hasPrefix(folder + "/") else {
                throw Wall.Failure("\(what) would be \(real), a folder of the system.")
            }
        }
        guard let own = Pinned(real) else { throw Wall.Failure("\(what) \(real) cannot be opened.") }
        self.own = own
        let git = GitFolders(of: real)
        fixed = git.folders.compactMap(Pinned.init)
        let names = WorkFolder.names.map { "\(real)/\($0)" }
        protected = (git.protected + names).compactMap(Pinned.init)
        former = WorkFolder.marks(names + WorkFolder.watched.map { "\(real)/\($0)" } + git.watched)
    }

    /// True if the path is in one of the folders that nothing inside may see, or has one in it.
    func reveals(_ path: String) -> Bool {
        kept.contains { $0 == path || $0.hasPrefix(path + "/") || path.hasPrefix($0 + "/") }
    }

    /// True if a confined program may have made the file: it is in the folder, or in a kept home.
    func mayHaveMade(_ path: String) -> Bool { ([self.path] + kept).contains { path.hasPrefix($0 + "/") } }

    private static func marks(_ paths: [String]) -> [String: String] {
        paths.reduce(into: [:]) { $0[$1] = Path($1).mark ?? "" }
    }

    /// What was made or changed since, of what runs outside. Sorted.
    public func changes() -> [String] {
        let now = WorkFolder.marks(former.keys + GitFolders(of: path).watched)
        return now.filter { former[$0.key, default: ""] != $0.value }.keys.sorted()
    }
}

/// A file or folder as it was found. It is mounted by its descriptor: what is written to the folder meanwhile, such as by
/// another confined program, cannot lead the mount elsewhere. A symbolic link is none: what it leads to would become
/// visible, and the repository chooses that.
public struct Pinned: Sendable, Equatable {
    public let path: String
    /// Without close-on-exec, for bubblewrap.
    public let descriptor: Int32

    init?(_ path: String) {
        guard Path(path).kind == .file || Path(path).kind == .folder else { return nil }
        descriptor = unsafe clinux_open_place(path)
        guard descriptor >= 0 else { return nil }
        self.path = path
    }
}

/// The folders of git that belong to a work tree, found without git: its configuration could start programs.
struct GitFolders {
    /// `.git`, or where a work tree's or a submodule's `.git` file leads to, and the folder that work trees share.
    private(set) var folders: [String] = []
    private(set) var protected: [String] = []
    /// What exists or could be made there and runs outside.
    private(set) var watched: [String] = []

    /// How deep submodules are looked for within submodules.
    private static let deepest = 8

    init(of tree: String) {
        let place = tree + "/.git"
        switch Path(place).kind {
        case .folder: add(place, depth: 0)
        case .file:
            protected.append(place)
            guard let text = Path(place).beginning, text.hasPrefix("gitdir: ") else { return }
            let line = text.dropFirst("gitdir: ".count).prefix { $0 != "\n" && $0 != "\r" }
            guard let folder = GitFolders.real(String(line), from: tree), GitFolders.isOfGit(folder),
                GitFolders.pointsBack(folder, to: tree)
            else { return }
            add(folder, depth: 0)
            guard let common = Path(folder + "/commondir").beginning,
                let shared = GitFolders.real(String(common.prefix { $0 != "\n" }), from: folder),
                folder.hasPrefix(shared + "/worktrees/"), GitFolders.isOfGit(shared)
            else { return }
            add(shared, depth: 0)
        // What a link leads to is not looked at: it would be the repository's choice.
        case .link, nil: watched.append(place)
        }
    }

    private static func real(_ text: String, from folder: String) -> String? {
        Path(text.hasPrefix("/") ? text : folder + "/" + text).real
    }

    /// A `.git` file may come from somebody else, and name any repository. So the folder that it names must name the
    /// work tree in turn: by `gitdir` for a further work tree, by `core.worktree` for a submodule.
    private static func pointsBack(_ folder: String, to tree: String) -> Bool {
        if let text = Path(folder + "/gitdir").beginning {
            return real(String(text.prefix { $0 != "\n" }), from: folder) == tree + "/.git"
        }
        let lines = (Path(folder + "/config").beginning ?? "").split(separator: "\n")
        return lines.contains { line in
            let parts = line.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\t" } }
            return parts.count == 2 && parts[0].lowercased() == "worktree" && real(parts[1], from: folder) == tree
        }
    }

    private static func isOfGit(_ folder: String) -> Bool {
        Path(folder + "/HEAD").kind == .file
            && (Path(folder + "/objects").kind == .folder || Path(folder + "/commondir").kind == .file)
    }

    private mutating func add(_ folder: String, depth: Int) {
        if depth == 0 { folders.append(folder) }
        let trees = Path(folder + "/worktrees").names.flatMap {
            ["worktrees/\($0)/commondir", "worktrees/\($0)/gitdir"]
        }
        for name in ["hooks", "config", "config.worktree", "commondir", "gitdir"] + trees {
            watched.append("\(folder)/\(name)")
            protected.append("\(folder)/\(name)")
        }
        guard depth < GitFolders.deepest else { return }
        addModules(in: folder + "/modules", depth: depth)
    }

    /// A submodule's name may have slashes in it.
    private mutating func addModules(in folder: String, depth: Int) {
        guard depth < GitFolders.deepest, Path(folder).kind == .folder else { return }
        for name in Path(folder).names {
            let module = "\(folder)/\(name)"
            guard Path(module).kind == .folder else { continue }
            if GitFolders.isOfGit(module) {
                add(module, depth: depth + 1)
            } else {
                addModules(in: module, depth: depth + 1)
            }
        }
    }
}
