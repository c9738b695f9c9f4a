internal import RingbackBase

/// The texts `cause` are the end of a sentence.
public enum KeyReason: Sendable, Equatable {
    case cryptography
    // MARK: Key files
    case file(FileFailure)
    case missing(path: String)
    case noKey(path: String)
    case notAnIdentifier(String)
    case notADirectory(path: String)
    case openToOthers(path: String)
    case insideState(path: String)
    // MARK: A passphrase
    case invalidParameters
    case outOfMemory
    // MARK: A systemd credential
    case noCredentials
    case noCredential
    case otherCredential
    case credentialTooShort
    case credentialTooLarge
    // MARK: The keyring
    case keyringNotAsked(cause: String)
    case noKeyring(cause: String)
    case notInKeyring
    case keyringLocked
    case keyringFailed(cause: String)
    case keyringChangedKey
    case notAKeyInKeyring
}

extension KeyReason {
    private static let credential = SystemdCredentialSource.credential

    package var sentence: String {
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
        case .outOfMemory: "There was not enough memory for the passphrase (128 MiB); close something, try again."
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
