internal import CLinux
internal import Glibc
public import RingbackBase

/// The program for which a process connected: the process itself, or, where that is one of Ringback's own executables, its
/// nearest ancestor that is neither one of them nor a shell.
public struct CallingProgram: Sendable {
    public let identity: ProgramIdentity
    public let origin: ProgramOrigin

    /// The kernel marks a file that was replaced by a newer one since.
    private static let own: Set = ["ringback", "ringback-relay", "ringback (deleted)", "ringback-relay (deleted)"]
    private static let shells: Set = [
        "sh", "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "tcsh", "zsh",
    ]
    /// They start services, and adopt the processes whose parent has ended: they are no program that asks for something.
    private static let managers: Set = ["systemd", "dinit", "runsvdir", "s6-svscan"]
    private static let mostAncestors = 64

    /// The end of a search among ancestors.
    struct Found: Sendable {
        /// Nil if there is no program above Ringback's own executables.
        let process: Int32?
        /// The last process of the search below it.
        let below: Int32
    }

    public init(identity: ProgramIdentity, origin: ProgramOrigin) {
        self.identity = identity
        self.origin = origin
    }

    /// - Parameter isVerified: the process is certainly the one that connected.
    public init(of pid: Int32, isVerified: Bool = false) {
        self.init(of: pid, for: CallingProgram.search(from: pid), isVerified: isVerified)
    }

    /// The program for which one of Ringback's own relays connected, by the client that it names. The relay refuses dumps,
    /// so its executable cannot be read, and it serves clients that are not among its ancestors. The claim is not proven.
    /// Nil if no claim is taken from the process, or the client belongs to another user.
    public init?(of client: Int32, namedBy relay: Int32, of uid: UInt32) {
        let executable = ProcessFacts.executable(of: relay)
        guard executable == nil || CallingProgram.isOwn(executable), client > 1, ProcessFacts.owner(of: client) == uid
        else { return nil }
        self.init(of: client, for: CallingProgram.search(from: client), isVerified: false)
    }

    /// - Parameter found: as ``search(from:)`` finds it.
    init(of pid: Int32, for found: Found, isVerified: Bool) {
        let link = ExecutableLink(of: found.process ?? -1)
        let isHere = link.text != nil && link.isFoundHere
        identity = ProgramIdentity(
            executable: link.text, unit: ProcessFacts.unit(of: found.process ?? pid), isVerified: isVerified && isHere,
            isRootOwned: isHere && link.text.map(FileOwner.isRootAlone) == true)
        origin = CallingProgram.origin(of: pid, for: found)
    }

    /// The program of a process whose executable was read before. If it has ended, or runs another one, the path is what
    /// is known of it.
    init(of pid: Int32, readAs executable: String?, isVerified: Bool) {
        let found = CallingProgram(of: pid, for: Found(process: pid, below: pid), isVerified: isVerified)
        guard found.identity.executable != executable else {
            self = found
            return
        }
        self.init(
            identity: ProgramIdentity(
                executable: executable, isVerified: isVerified,
                isRootOwned: isVerified && executable.map(FileOwner.isRootAlone) == true), origin: found.origin)
    }

    /// True for an executable of Ringback by its name: another file of that name has no more rights than ours, which
    /// passes the tokens on.
    static func isOwn(_ executable: String?) -> Bool { executable.map { own.contains(fileName($0)) } ?? false }

    /// Process 1, a service manager, and an ancestor whose executable cannot be read end the search: then it is the shell
    /// below them, or nothing.
    static func search(from pid: Int32) -> Found {
        guard isOwn(ProcessFacts.executable(of: pid)) else { return Found(process: pid, below: pid) }
        var (shell, below, current): (Int32?, Int32, Int32) = (nil, pid, pid)
        for _ in 0..<mostAncestors {
            guard let parent = ProcessFacts.parent(of: current), parent > 1,
                let executable = ProcessFacts.executable(of: parent), !managers.contains(fileName(executable))
            else { break }
            below = current
            current = parent
            if isOwn(executable) {
                shell = nil
            } else if shells.contains(fileName(executable)) {
                shell = parent
            } else {
                return Found(process: parent, below: below)
            }
        }
        return Found(process: shell, below: below)
    }

    /// A process and its ancestors, the nearest first.
    public static func line(of pid: Int32) -> [Int32] {
        var line = [pid]
        while line.count <= mostAncestors, let parent = ProcessFacts.parent(of: line[line.count - 1]), parent > 0 {
            line.append(parent)
        }
        return line
    }

    /// Where a process belongs that answers a question, or listens for one.
    public static func ancestors(of pid: Int32) -> Set<String> { Set(line(of: pid).compactMap(key)) }

    private static func key(of pid: Int32) -> String? { ProcessFacts.startTime(of: pid).map { "\(pid) \($0)" } }

    /// The session is that of the process that connected if it has a terminal: a terminal emulator has many. Programs
    /// start their commands in sessions without one.
    private static func origin(of pid: Int32, for found: Found) -> ProgramOrigin {
        let program = found.process ?? pid
        let isInTerminal = ProcessFacts.hasTerminal(pid)
        let isEmulator = isInTerminal && !ProcessFacts.hasTerminal(program)
        let placed = isInTerminal ? pid : program
        let group = ProcessFacts.applicationGroup(of: pid)
        let terminal = terminal(of: placed, in: group)
        return ProgramOrigin(
            group: group, session: ProcessFacts.sessionKey(of: terminal ?? placed), isOneTerminal: terminal != nil,
            process: key(of: isEmulator ? found.below : program))
    }

    /// The first process of the emulator's terminal in which a process was started, if the emulator is in the same group: many
    /// emulators, and multiplexers such as tmux, give their terminals no control groups of their own. Programs start commands
    /// in further terminals, and without one: all of them belong to this terminal.
    private static func terminal(of pid: Int32, in group: String?) -> Int32? {
        guard let group else { return nil }
        let line = line(of: pid).drop { !ProcessFacts.hasTerminal($0) }
        guard let emulator = line.firstIndex(where: { !ProcessFacts.hasTerminal($0) }),
            ProcessFacts.applicationGroup(of: line[emulator]) == group
        else { return nil }
        return line[emulator - 1]
    }

    private static func fileName(_ path: String) -> String {
        String(path.utf8.split(separator: UInt8(ascii: "/")).last ?? Substring(path).utf8) ?? path
    }
}

enum FileOwner {
    /// True if the file and each folder above it belong to root and can be written by nobody else. The folders are looked
    /// at from the root on: below one of root's, no user has mounted a file system that does not answer.
    static func isRootAlone(_ path: String) -> Bool {
        guard path.hasPrefix("/") else { return false }
        var place = "/"
        var rest = path.split(separator: "/")[...]
        while true {
            var status = stat()
            guard unsafe lstat(place, &status) == 0, status.st_uid == 0,
                status.st_mode & 0o022 == 0 || status.st_mode & S_IFMT == S_IFLNK
            else { return false }
            guard let next = rest.popFirst() else { return status.st_mode & S_IFMT == S_IFREG }
            place += (place == "/" ? "" : "/") + next
        }
    }
}

extension ProcessFacts {
    /// The control group of an application, a terminal or a service, unique for its life. Nil for a process that is in none
    /// of its own, such as in the log-in session as a whole.
    static func applicationGroup(of pid: Int32) -> String? {
        guard let path = controlGroup(of: pid) else { return nil }
        let names = path.split(separator: "/")
        guard let index = names.lastIndex(where: { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }) else {
            return nil
        }
        let name = names[index]
        func isManager(_ name: Substring) -> Bool { name.hasPrefix("user@") && name.hasSuffix(".service") }
        guard !isManager(name), name != "init.scope" else { return nil }
        guard names[..<index].contains(where: isManager) || name.hasSuffix(".service") else { return nil }
        let group = "/" + names[...index].joined(separator: "/")
        var status = stat()
        return unsafe stat("/sys/fs/cgroup\(group)", &status) == 0 ? "\(group) \(status.st_ino)" : group
    }
}
