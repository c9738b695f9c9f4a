internal import CLinux
internal import Glibc
public import RingbackBase

/// The program for which a process connected: the process itself, or, where that is one of Ringback's own executables, its
/// nearest ancestor that is neither one of them nor a shell.
public struct CallingProgram: Sendable {
    public let identity: ProgramIdentity
    public let origin: ProgramOrigin

    private static let own: Set = ["ringback", "ringback-relay"]
    private static let shells: Set = [
        "sh", "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "tcsh", "zsh",
    ]
    private static let mostAncestors = 64

    public init(identity: ProgramIdentity, origin: ProgramOrigin) {
        self.identity = identity
        self.origin = origin
    }

    /// - Parameter isVerified: the process is certainly the one that connected.
    public init(of pid: Int32, isVerified: Bool = false) {
        self.init(of: pid, for: CallingProgram.ancestor(of: pid), isVerified: isVerified)
    }

    /// - Parameter program: the process of the program, as ``ancestor(of:)`` finds it.
    init(of pid: Int32, for program: Int32, isVerified: Bool) {
        let link = ExecutableLink(of: program)
        let isHere = link.text != nil && link.isFoundHere
        identity = ProgramIdentity(
            executable: link.text, unit: ProcessFacts.unit(of: program), isVerified: isVerified && isHere,
            isRootOwned: isHere && link.text.map(FileOwner.isRootAlone) == true)
        origin = CallingProgram.origin(of: pid, for: program)
    }

    /// The program of a process whose executable was read before. If it has ended, or runs another one, the path is what
    /// is known of it.
    init(of pid: Int32, readAs executable: String?, isVerified: Bool) {
        let found = CallingProgram(of: pid, for: pid, isVerified: isVerified)
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

    /// An ancestor whose executable cannot be read ends the search: then it is the last one whose can be.
    static func ancestor(of pid: Int32) -> Int32 {
        guard isOwn(ProcessFacts.executable(of: pid)) else { return pid }
        var found = pid
        for _ in 0..<mostAncestors {
            guard let parent = ProcessFacts.parent(of: found), parent > 1,
                let executable = ProcessFacts.executable(of: parent)
            else { return found }
            found = parent
            if !isOwn(executable), !shells.contains(fileName(executable)) { return found }
        }
        return found
    }

    /// The session is that of the process that connected if it has a terminal: a terminal emulator has many. Programs
    /// start their commands in sessions without one.
    private static func origin(of pid: Int32, for program: Int32) -> ProgramOrigin {
        let isInTerminal = ProcessFacts.hasTerminal(pid)
        return ProgramOrigin(
            group: ProcessFacts.applicationGroup(of: pid),
            session: ProcessFacts.sessionKey(of: isInTerminal ? pid : program),
            process: ProcessFacts.hasTerminal(program)
                ? ProcessFacts.startTime(of: program).map { "\(program) \($0)" } : nil)
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
