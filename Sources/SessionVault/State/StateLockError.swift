import Glibc

/// The daemon that holds a state directory.
public struct StateHolder: Sendable, Equatable {
    public let host: String
    public let pid: Int

    public init(host: String, pid: Int) {
        self.host = host
        self.pid = pid
    }
}

/// Why a state directory cannot be used. Contains paths, modes and ids.
public enum StateLockError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Another daemon holds the directory; `holder` is nil if the lock file does not name it.
    case held(directory: String, holder: StateHolder?)
    /// The lock that we had was taken by another daemon, or its file is gone. The daemon must stop, because two daemons
    /// must not use the same tokens.
    case lost(directory: String, holder: StateHolder?)
    /// A symbolic link, or no directory.
    case notADirectory(String)
    /// The directory or the lock file belongs to another user.
    case foreignOwner(path: String, uid: UInt32)
    /// Other users may enter the directory; `mode` has the permission bits.
    case openToOthers(directory: String, mode: UInt32)
    /// Other users control a directory above it.
    case untrustedParent(DirectoryTrust.Failure)
    /// The lock file is not a regular file.
    case notAFile(String)
    /// A system call failed.
    case system(call: String, path: String, errno: Int32)

    public var description: String {
        switch self {
        case .held(let directory, let holder):
            return "another ringbackd\(StateLockError.words(for: holder)) uses the state directory \(directory); "
                + "stop it, or give this one a directory of its own with --state"
        case .lost(let directory, let holder):
            return
                "the lock on the state in \(directory) was lost\(holder.map { " to \($0.host), pid \($0.pid)" } ?? "")"
        case .notADirectory(let path):
            return "\(path) is a symbolic link or not a directory; remove it, or name another place with --state"
        case .foreignOwner(let path, let uid):
            return "\(path) belongs to uid \(uid), not to uid \(geteuid()); name a directory of your own with --state"
        case .openToOthers(let directory, let mode):
            return "\(directory) is open to other users (mode \(String(mode, radix: 8)))"
        case .untrustedParent(let failure):
            return "\(failure.path) \(failure.reason); or name another place for the state with --state"
        case .notAFile(let path):
            return "\(path) is not a plain file; remove it and start again"
        case .system(let call, let path, let code):
            return "\(path): \(unsafe String(cString: strerror(code))) (\(call))"
        }
    }

    private static func words(for holder: StateHolder?) -> String {
        holder.map { " on \($0.host), pid \($0.pid)," } ?? ""
    }
}
