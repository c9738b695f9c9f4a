internal import CLinux
import Glibc

/// What a confined program sees of the file system and of the environment, as bubblewrap is told it (bwrap(1)). Whatever
/// is not named here is not there.
public struct Wall: Sendable {
    public struct Failure: Error, Equatable {
        public let text: String
        init(_ text: String) { self.text = text }
    }

    /// The place of a program of ours inside, which waits until the network is there and then becomes the command.
    public static let launcher = "/run/ringback/launcher"
    /// The address of the name server inside, which pasta forwards to that of the machine (RFC 5737: nobody's).
    public static let nameServer = "192.0.2.53"

    /// The folder that the command works in, writable, by its real path.
    public let workFolder: WorkFolder
    /// The folder outside that is the home directory inside.
    public var keptHome: String
    /// The home directory, by the same path on both sides.
    public var home: String
    public var readable: [WorkFolder] = []
    public var writable: [WorkFolder] = []
    /// The files of the command, and links to them (path and target).
    private var programs: [Pinned] = []
    private var links: [(path: String, target: String)] = []
    /// The path of this program, which is ``launcher`` inside.
    public var program: String
    /// Where `/etc/resolv.conf` leads to, and the descriptor of what it has inside; nil without a network.
    public var resolver: (path: String, descriptor: Int32)?
    public var environment: [(name: String, value: String)] = []
    /// Sandboxes within this one can be made: more of the kernel can be reached.
    public var isNested = false
    /// The files of the display, by which a program sees and types what the user does.
    public var displayFiles: [String] = []
    /// The directories of exposed sockets, and where they are inside.
    private var socketDirectories: [(outside: String, inside: String)] = []
    /// The socket of Ringback inside, if the command is given one.
    public static let socket = "/run/ringback/exposed/socket"
    /// A folder inside with this program by its name, for where it is not installed in the system's folders.
    private static let programs = "/run/ringback/bin"
    public static let ringback = programs + "/ringback"
    /// The descriptor of the filter of system calls.
    public var filter: Int32 = -1

    public init(workFolder: WorkFolder, keptHome: String, home: String, program: String) {
        self.workFolder = workFolder
        self.keptHome = keptHome
        self.home = home
        self.program = program
    }

    /// Folders of the system beside /usr and /etc, as distributions have them. They are there if they are outside.
    private static let systemFolders = [
        "/opt", "/nix/store", "/gnu/store", "/snap", "/run/current-system", "/var/lib/ca-certificates",
    ]

    /// Those that are there: they can be read inside.
    public static var otherSystemFolders: [String] { systemFolders.filter { Path($0).exists } }

    /// The first arguments of bubblewrap. Its end ends everything inside, since that is its process namespace.
    public static let namespaces = [
        "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
        "--unshare-net",
    ]

    /// The arguments of bubblewrap, without its own name and without the command.
    public var arguments: [String] {
        var all = Wall.namespaces
        if !isNested { all.append("--disable-userns") }
        if filter >= 0 { all += ["--seccomp", "\(filter)"] }
        all += ["--ro-bind", "/usr", "/usr"]
        for name in ["bin", "sbin", "lib", "lib32", "lib64"] {
            switch Path("/\(name)").kind {
            case .link(let target): all += ["--symlink", target, "/\(name)"]
            case .folder: all += ["--ro-bind", "/\(name)", "/\(name)"]
            case .file, nil: break
            }
        }
        all += ["--ro-bind", "/etc", "/etc"]
        all += Wall.otherSystemFolders.flatMap { ["--ro-bind", $0, $0] }
        all += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/var/tmp", "--tmpfs", "/run"]
        all += ["--perms", "0700", "--dir", runtimeDirectory]
        all += ["--ro-bind", program, Wall.launcher, "--symlink", Wall.launcher, Wall.ringback]
        for directory in socketDirectories { all += ["--ro-bind", directory.outside, directory.inside] }
        if let resolver { all += ["--ro-bind-data", "\(resolver.descriptor)", resolver.path] }
        all += ["--bind", keptHome, home]
        // A folder that lies in another one is mounted after it.
        var folders = [(workFolder.own, "--bind-fd")]
        folders += readable.map { ($0.own, "--ro-bind-fd") } + writable.map { ($0.own, "--bind-fd") }
        folders += programs.map { ($0, "--ro-bind-fd") }
        for (pinned, option) in folders.sorted(by: { $0.0.path.utf8.count < $1.0.path.utf8.count }) {
            all += [option, "\(pinned.descriptor)", pinned.path]
        }
        for folder in changeable {
            for pinned in folder.fixed { all += ["--bind-fd", "\(pinned.descriptor)", pinned.path] }
            for pinned in folder.protected { all += ["--ro-bind-fd", "\(pinned.descriptor)", pinned.path] }
        }
        for link in links { all += ["--symlink", link.target, link.path] }
        for path in displayFiles { all += ["--ro-bind", path, path] }
        // The environment is that of bubblewrap itself: its memory can be read inside, and its arguments by every user.
        return all + ["--chdir", workFolder.path]
    }

    /// The folders that the command may change.
    public var changeable: [WorkFolder] { [workFolder] + writable }

    /// What was made or changed in them that runs outside.
    public func changes() -> [String] { changeable.flatMap { $0.changes() } }

    /// A confined program chooses where its links lead, and a later one must not get what is there.
    ///
    /// - Parameter paths: absolute paths of the folders that may be read and of those that may be changed, in this order,
    ///   as the user wrote them.
    public func checkLinks(on paths: [String]) throws(Failure) {
        for (path, folder) in zip(paths, readable + writable) {
            let route = Route(path)
            if let link = foreignLink(on: route) {
                throw Failure(
                    "\(path) leads through the link \(link), which a confined program may have made. Name the folder "
                        + "itself.")
            }
            // A link that was made meanwhile.
            guard route.exists, route.end == folder.path else {
                throw Failure("\(path) has just been changed. Try again.")
            }
        }
    }

    private func foreignLink(on route: Route) -> String? {
        route.links.first { link in changeable.contains { $0.mayHaveMade(link) } }
    }

    /// A link in the kept home, which an earlier command may have made, would lead a mount elsewhere.
    public func checkHome() throws(Failure) {
        let places = descriptorsByPath.map(\.path) + displayFiles + links.map { Path.folder(of: $0.path) }
        for place in places where place.hasPrefix(home + "/") {
            var path = keptHome
            for part in place.dropFirst(home.utf8.count + 1).split(separator: "/") {
                path += "/" + part
                if case .link? = Path(path).kind {
                    throw Failure(
                        "The home directory \(keptHome) has a link at \(path). Remove it, or choose --home NAME.")
                }
            }
        }
    }

    /// The link to the command's program is in the kept home since the last time, and bubblewrap replaces none: one that
    /// leads to the program stays, one to a former version goes.
    public mutating func settleLinks() {
        links.removeAll { link in
            guard link.path.hasPrefix(home + "/"),
                let kept = Path(keptHome).real.map({ $0 + link.path.dropFirst(home.utf8.count) }),
                case .link(let target)? = Path(kept).kind
            else { return false }
            if target == link.target { return true }
            let folder = unsafe clinux_open_place(Path.folder(of: kept))
            guard folder >= 0 else { return false }
            unsafe unlinkat(folder, String(kept.split(separator: "/").last ?? ""), 0)
            close(folder)
            return false
        }
    }

    private var descriptorsByPath: [Pinned] {
        let folders = changeable.flatMap { [$0.own] + $0.fixed + $0.protected }
        return folders + readable.map(\.own) + programs
    }

    /// What bubblewrap reads by its number, and so has to inherit.
    public var descriptors: [Int32] {
        [filter] + (resolver.map { [$0.descriptor] } ?? []) + descriptorsByPath.map(\.descriptor)
    }

    public var runtimeDirectory: String { "/run/user/\(getuid())" }

    // MARK: Environment

    /// Variables that are passed on: how a person's terminal is, and which certificates and proxies there are. Nothing
    /// else, since variables have tokens, name sockets and start programs.
    private static let passed: Set<String> = [
        "PATH", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "NO_COLOR", "USER", "LOGNAME", "SHELL", "http_proxy",
        "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE",
        "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO",
    ]

    /// The environment inside.
    ///
    /// - Parameters:
    ///   - own: that of this process.
    ///   - named: further variables, by name, which the user wants inside.
    public func environment(
        of own: [String: String], named: [String]
    ) -> [(name: String, value: String)] {
        var all = own.filter { name, _ in
            Wall.passed.contains(name) || name.hasPrefix("LC_") || named.contains(name)
        }
        all["PATH"] = [own["PATH"] ?? "/usr/local/bin:/usr/bin:/bin", Wall.programs].joined(separator: ":")
        all["HOME"] = home
        all["XDG_RUNTIME_DIR"] = runtimeDirectory
        all["PWD"] = workFolder.path
        return all.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Where the socket is inside that serves the MCP server of an account.
    public static func socket(ofServer account: String) -> String { "/run/ringback/mcp/\(account)/socket" }

    /// Gives a socket of Ringback. The first one is that of the variable by which programs find it.
    ///
    /// - Parameters:
    ///   - directory: has no other file than the socket, and that of its relay.
    ///   - server: the account whose MCP server it serves; nil for tokens.
    public mutating func addSocket(in directory: String, server: String? = nil) {
        let socket = server.map(Wall.socket(ofServer:)) ?? Wall.socket
        socketDirectories.append((directory, Path.folder(of: socket)))
        guard socketDirectories.count == 1 else { return }
        environment.removeAll { $0.name == "RINGBACK_SOCK" }
        environment.append(("RINGBACK_SOCK", socket))
    }

    /// Gives the display: its sockets, its key, and the variables that name them.
    public mutating func addDisplay(of own: [String: String]) {
        let runtime = own["XDG_RUNTIME_DIR"] ?? ""
        var found = [(String, String)]()
        if let name = own["WAYLAND_DISPLAY"], !name.isEmpty {
            found.append(("WAYLAND_DISPLAY", name.hasPrefix("/") ? name : "\(runtime)/\(name)"))
        }
        if let name = own["XAUTHORITY"] { found.append(("XAUTHORITY", name)) }
        for (name, path) in found where path.hasPrefix("/") && Path(path).exists && foreignLink(on: Route(path)) == nil
        {
            displayFiles.append(path)
            environment.append((name, path))
        }
        if let name = own["DISPLAY"] {
            environment.append(("DISPLAY", name))
            if Path("/tmp/.X11-unix").exists { displayFiles.append("/tmp/.X11-unix") }
        }
    }

    // MARK: The command

    /// Gives what a program needs whose file is in the home directory: its own file by its real path, or the folder of the
    /// version that it is a part of (`VERSION/bin/NAME`, `VERSION/lib/node_modules/…`), and the link by which it was found.
    /// A program of the work folder needs nothing, and a link there, or one that leads through a link there, leads to
    /// nothing that is not there anyway: the repository would choose what is shown.
    ///
    /// - Parameter place: the program's path, as it was found.
    public mutating func addProgram(at place: String) {
        let route = Route(place)
        let real = route.end
        guard route.exists, foreignLink(on: route) == nil, real.hasPrefix(home + "/"),
            !changeable.contains(where: { "\(real)/".hasPrefix($0.path + "/") || place.hasPrefix($0.path + "/") })
        else { return }
        let parts = real.split(separator: "/").map(String.init)
        let end = parts.firstIndex { $0 == "node_modules" }.map { $0 - 1 } ?? parts.count - 2
        let version = "/" + parts[..<max(0, end)].joined(separator: "/")
        let isVersion =
            end > home.split(separator: "/").count + 1 && ["bin", "lib"].contains(parts[end])
            && !version.hasSuffix("/.local") && !workFolder.reveals(version)
        guard let pinned = Pinned(isVersion ? version : real), !workFolder.reveals(real) else { return }
        programs.append(pinned)
        if place != real, place.hasPrefix(home + "/"), !place.hasPrefix(pinned.path + "/") {
            links.append((place, real))
        }
    }

    /// What of the command's files is there.
    public var programFiles: [String] { programs.map(\.path) + links.map(\.path) }
}

/// A path of the file system outside.
struct Path {
    enum Kind: Equatable {
        case file, folder
        case link(String)
    }

    let text: String

    init(_ text: String) { self.text = text }

    var exists: Bool { kind != nil }

    static func folder(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    /// What is there; nil for nothing. A symbolic link is not followed.
    var kind: Kind? {
        var facts = stat()
        guard unsafe lstat(text, &facts) == 0 else { return nil }
        switch facts.st_mode & S_IFMT {
        case S_IFDIR: return .folder
        case S_IFLNK: return target.map { .link($0) }
        default: return .file
        }
    }

    private var target: String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink(text, &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    var real: String? {
        guard let found = unsafe realpath(text, nil) else { return nil }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    /// The names in a folder, sorted.
    var names: [String] {
        guard let directory = unsafe opendir(text) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The first 4,096 bytes of a regular file.
    var beginning: String? {
        let file = unsafe open(text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(file, &buffer, buffer.count)
        return count >= 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    /// What changes when something is written at the path or, in a folder, below it: inode, size and time of change.
    var mark: String? {
        var facts = stat()
        guard unsafe lstat(text, &facts) == 0 else { return nil }
        let own = "\(facts.st_ino) \(facts.st_size) \(facts.st_ctim.tv_sec).\(facts.st_ctim.tv_nsec)"
        guard facts.st_mode & S_IFMT == S_IFDIR else { return own }
        return names.reduce(into: own) { $0 += " " + $1 + "=" + (Path(text + "/" + $1).mark ?? "") }
    }
}

/// The variables by which programs know the hosts that they reach without a proxy.
public enum ProxyExceptions {
    private static let names = ["no_proxy", "NO_PROXY"]

    /// Their values with a further host. A variable that is not there has the hosts of the other one, since some programs look
    /// at one of the two.
    ///
    /// - Parameter value: of a variable; nil if it is not there.
    public static func adding(
        _ host: String, to value: (String) -> String?
    ) -> [(name: String, value: String)] {
        let other = names.lazy.compactMap(value).first { !$0.isEmpty } ?? ""
        return names.map { name in
            let own = value(name).flatMap { $0.isEmpty ? nil : $0 } ?? other
            // Every host, which programs read only where it stands alone.
            return (name, own == "*" ? own : own.isEmpty ? host : "\(own),\(host)")
        }
    }
}
