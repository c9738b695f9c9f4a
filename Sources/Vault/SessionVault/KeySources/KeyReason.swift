/// Why a key source cannot return or store a key. The texts `cause` are the end of a sentence.
public enum KeyReason: Sendable, Equatable {
    /// The cryptography library failed, probably for lack of memory.
    case cryptography

    // MARK: Key files

    case file(FileFailure)
    case missing(path: String)
    /// The file does not contain a key.
    case noKey(path: String)
    case notAnIdentifier(String)
    case notADirectory(path: String)
    case openToOthers(path: String)
    /// The directory is inside the state directory.
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
    /// The keyring did not return the new key unchanged.
    case keyringChangedKey
    /// The keyring's item is not a key.
    case notAKeyInKeyring
}
