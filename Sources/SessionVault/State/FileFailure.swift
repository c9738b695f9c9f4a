// Errors say what was tried, where, why it failed, and what to do.

internal import Glibc

/// A failed system call on a file.
struct FileFailure: Error, Equatable {
    /// A verb such as "write" or "read".
    let action: String
    let path: String
    let code: Int32
    /// True if the change was made but may be undone by a power failure, so both states are possible.
    var isInDoubt = false

    /// The error as a sentence for users.
    var reason: String {
        let doubt = isInDoubt ? " (it is written, but may not survive a power cut)" : ""
        return "Cannot \(action) \(path): \(unsafe String(cString: strerror(code)))\(doubt); \(advice)."
    }

    private var advice: String {
        switch code {
        case ENOSPC: "free some space on that file system"
        case EDQUOT: "free some space, or have your quota raised"
        case EROFS: "make that file system writable, or choose another state directory"
        case EACCES, EPERM: "it must be yours, directories with mode 0700 and files with 0600"
        case EIO: "the disk reports errors: look into the kernel's log and save your data"
        case EMFILE, ENFILE: "close programs that hold many files, or raise the limit"
        case ENOENT, ESTALE: "it existed before: restore it if it was moved, and restart the daemon"
        case ELOOP, EISDIR, ENOTDIR: "a file of another kind is in its place: move it away"
        default: "try again"
        }
    }
}
