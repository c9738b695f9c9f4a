internal import BrokerCore
internal import Glibc
internal import KeptFiles

extension FileReason: Sentence {
    var sentence: String {
        switch self {
        case .folderOpenToOthers(let path, let folder, let cause): "\(path) is not kept: \(folder) \(cause)."
        case .folderNotOpened(let path, let folder, let code):
            "\(path) is not kept: \(folder): \(FileReason.text(code))."
        case .onDisk(let path):
            "\(path) is not kept: it would be on a disk, not in memory (tmpfs). Choose a path below "
                + "$XDG_RUNTIME_DIR, or allow it with on_disk = true."
        case .notRead(let path, let code): "\(path) cannot be read: \(FileReason.text(code))."
        case .notWritten(let path, let code): "\(path) cannot be written: \(FileReason.text(code))."
        case .notRemoved(let path, let code): "\(path) cannot be removed: \(FileReason.text(code))."
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

    private static func text(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
}
