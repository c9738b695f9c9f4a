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
public enum StateLockError: Error, Sendable, Equatable {
    /// Another daemon holds the directory; `holder` is nil if the lock file does not name it.
    case held(directory: String, holder: StateHolder?)
    /// Another daemon has taken the lock that this daemon held, or the lock file was removed. The daemon must stop,
    /// because two daemons must not use the same tokens.
    case lost(directory: String, holder: StateHolder?)
    /// The path is a symbolic link or not a directory.
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
}
