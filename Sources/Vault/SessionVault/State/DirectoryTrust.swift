internal import Glibc
internal import RingbackBase

/// Checks whether another user could replace a directory or one above it. Attack: a user who can write to a parent
/// directory can rename the directory and put another one in its place. The rule is that of StrictModes in sshd.
public enum DirectoryTrust {
    public struct Failure: Error, Equatable {
        public enum Reason: Sendable, Equatable {
            /// The target of the link does not exist.
            case danglingLink
            /// It belongs to this uid, which is neither the user's nor root's.
            case foreignOwner(uid: UInt32)
            case writableByOthers

            /// Goes on after the path, without a full stop.
            package var sentence: String {
                switch self {
                case .danglingLink: "is a link whose target does not exist. Remove it"
                case .foreignOwner(let uid):
                    "belongs to uid \(uid), neither you (uid \(geteuid())) nor root, who could replace what is in it"
                case .writableByOthers: "can be written by others, who could replace what is in it"
                }
            }
        }

        public let path: String
        public let reason: Reason

        public init(path: String, reason: Reason) {
            self.path = path
            self.reason = reason
        }
    }

    /// Checks every directory above `path`, following links. A missing directory is accepted, because it is created in
    /// one that was checked. A directory is trusted if it belongs to the user or root and others cannot write to it, or
    /// if it has the sticky bit (`/tmp`): others cannot rename files of other users in it.
    public static func check(parentsOf path: String) throws(Failure) {
        guard let slash = path.lastIndex(of: "/") else { return try check(".") }
        try check(slash == path.startIndex ? "/" : String(path[..<slash]))
    }

    /// Also checks the directory itself.
    public static func check(_ path: String) throws(Failure) {
        var rest = components(of: Path.absolute(path) ?? path)
        var current = ""
        // The limit of the kernel is 40.
        var links = 40
        try check("/", isLink: false)
        while !rest.isEmpty {
            let name = rest.removeFirst()
            if name == "." { continue }
            if name == ".." {
                current = current.lastIndex(of: "/").map { String(current[..<$0]) } ?? ""
                continue
            }
            let next = "\(current)/\(name)"
            var status = stat()
            // Missing or not accessible: opening it will report that.
            guard unsafe lstat(next, &status) == 0 else { return }
            let isLink = status.st_mode & S_IFMT == S_IFLNK
            try check(next, isLink: isLink)
            guard isLink else {
                current = next
                continue
            }
            links -= 1
            guard links > 0, let target = target(of: next) else { throw Failure(path: next, reason: .danglingLink) }
            if target.hasPrefix("/") { current = "" }
            rest = components(of: target) + rest
        }
    }

    private static func check(_ path: String, isLink: Bool) throws(Failure) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return }
        let user = geteuid()
        guard status.st_uid == user || status.st_uid == 0 || isUnmapped(status.st_uid) else {
            throw Failure(path: path, reason: .foreignOwner(uid: status.st_uid))
        }
        // The mode of a link has no meaning. With the sticky bit others cannot rename our files.
        guard !isLink, status.st_mode & 0o1000 == 0 else { return }
        // On many systems each user has a group of the same number without other members, and the umask 002.
        let isOwnGroup = status.st_gid == user && getegid() == user
        guard status.st_mode & (isOwnGroup ? 0o002 : 0o022) == 0 else {
            throw Failure(path: path, reason: .writableByOthers)
        }
    }

    /// True for the overflow uid (`nobody`) in a user namespace, which shows it for the files of every user that it
    /// does not map, often also for those of the outside root. They cannot be distinguished, so this uid is accepted.
    private static func isUnmapped(_ uid: UInt32) -> Bool { uid == overflow }

    /// Nil outside of user namespaces.
    private static let overflow: UInt32? = {
        let map = FileBytes.text(of: "/proc/self/uid_map").split { $0 == " " || $0 == "\n" }
        guard map.count >= 3, map != ["0", "0", "4294967295"] else { return nil }
        return UInt32(FileBytes.text(of: "/proc/sys/kernel/overflowuid").prefix { $0 != "\n" })
    }()

    private static func target(of link: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe readlink(link, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func components(of path: String) -> [String] { path.split(separator: "/").map(String.init) }
}
