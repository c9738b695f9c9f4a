internal import BrokerCore
internal import Glibc
internal import KeptFiles
public import SessionVault

extension FileReason: Sentence {
    var sentence: String {
        switch self {
        case .folderOpenToOthers(let path, let failure):
            "\(path) is not kept: \(failure.path) \(failure.reason.sentence)."
        case .folderNotOpened(let path, let folder, let code):
            "\(path) is not kept: \(folder): \(text(ofError: code))."
        case .onDisk(let path):
            "\(path) is not kept: it would be on a disk, not in memory (tmpfs). Choose a path below "
                + "$XDG_RUNTIME_DIR, or allow it with on_disk = true."
        case .notRead(let path, let code): "\(path) cannot be read: \(text(ofError: code))."
        case .notWritten(let path, let code): "\(path) cannot be written: \(text(ofError: code))."
        case .notRemoved(let path, let code): "\(path) cannot be removed: \(text(ofError: code))."
        case .symbolicLink(let path): "\(path) is a symbolic link."
        case .notRegular(let path): "\(path) is not a regular file."
        case .ofOtherUser(let path): "\(path) belongs to another user."
        case .ofOtherProgram(let path): "\(path) was written by another program."
        case .left(let reason): "\(reason.sentence) It is neither overwritten nor removed."
        case .tooMuchScope(let name, let excess):
            "The provider of \(name) issued a token with more scope than the configuration names for the file "
                + "(\(excess.joined(separator: " ")))."
        case .tokenCharacters(let name): "The token of \(name) has characters that are not allowed in a token."
        case .typeCharacters(let name): "The type of \(name)'s token has characters that no type has."
        case .line(let cause): cause
        case .recordNotWritten(let error): "The record of the kept files cannot be written: \(error.sentence)"
        case .noIDToken(let name): "The session of \(name) has no valid ID token, and refreshes bring none."
        case .notRenewable(let name): "The token of \(name) cannot be renewed at present."
        }
    }
}

extension DirectoryTrust.Failure.Reason: Sentence {
    /// Goes on after the path, without a full stop.
    public var sentence: String {
        switch self {
        case .danglingLink: "is a link whose target does not exist. Remove it"
        case .foreignOwner(let uid):
            "belongs to uid \(uid), neither you (uid \(geteuid())) nor root, who could replace what is in it"
        case .writableByOthers: "can be written by others, who could replace what is in it"
        }
    }
}

/// The system's text for an `errno`.
func text(ofError code: Int32) -> String { unsafe String(cString: strerror(code)) }
