internal import Glibc
internal import SessionVault

extension KeyReason: Sentence {
    private static let credential = SystemdCredentialSource.credential

    var sentence: String {
        switch self {
        case .cryptography: "The cryptography library failed (out of memory?); try again."
        case .file(let failure): failure.sentence
        case .missing(let path): "\(path) is missing. Restore it."
        case .noKey(let path): "\(path) holds no key; restore it from a backup."
        case .notAnIdentifier(let text): "\"\(text)\" is no key's identifier."
        case .notADirectory(let path):
            "\(path) is a symbolic link or not a directory. Set key_directory to a real directory."
        case .openToOthers(let path): "\(path) must be yours and closed to others (mode 0700)."
        case .insideState(let path):
            "\(path) is inside the state directory, so a copy of that directory would contain the key. Move it out."
        case .invalidParameters:
            "The parameters in vault.key are not valid for a passphrase. Restore the file from a backup."
        case .outOfMemory:
            "There was not enough memory for the passphrase (128 MiB); close something, try again."
        case .noCredentials:
            "The daemon was started without credentials (CREDENTIALS_DIRECTORY is not set); start it as a unit with "
                + "LoadCredential=\(KeyReason.credential)."
        case .noCredential:
            "The unit has no credential \(KeyReason.credential); give it one with LoadCredential=."
        case .otherCredential:
            "The credential \(KeyReason.credential) is not the one that the vault was sealed with. Give the unit the "
                + "right one and restart it."
        case .credentialTooShort:
            "The credential \(KeyReason.credential) is shorter than 32 bytes; give the unit a random one."
        case .credentialTooLarge: "The credential \(KeyReason.credential) is larger than 1 MiB."
        case .keyringNotAsked(let cause): "The keyring could not be asked: \(cause)."
        case .noKeyring(let cause): "The keyring is not there: \(cause)."
        case .notInKeyring: "The keyring has no key for this vault."
        case .keyringLocked: "The keyring is locked. Unlock it, and this goes on by itself."
        case .keyringFailed(let cause): "The keyring failed: \(cause)."
        case .keyringChangedKey: "The keyring did not return the key unchanged."
        case .notAKeyInKeyring: "The keyring's item for the vault is not a key."
        }
    }
}

extension FileFailure: Sentence {
    /// What was tried, where, why it failed, and what to do.
    var sentence: String {
        let doubt = isInDoubt ? " (it is written, but may not survive a power cut)" : ""
        return "Cannot \(action.verb) \(path): \(text(ofError: code))\(doubt); \(advice)."
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

extension FileFailure.Action {
    fileprivate var verb: String {
        switch self {
        case .makeRoom: "make room in"
        case .setAside: "set aside"
        default: rawValue
        }
    }
}
