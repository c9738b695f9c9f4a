public import Secrets

/// Why a vault cannot be used, or not for this, as a fact. Its sentence is written where it is shown; nothing decides by
/// the sentence. It holds paths, names of accounts and numbers; never a key or a sealed text.
public indirect enum VaultReason: Sendable, Equatable {
    /// There is no other reason than that it is closed.
    case locked
    case notOpened
    case lockedByUser
    /// The key's source needs a passphrase.
    case needsPassphrase
    /// No passphrase was chosen yet: the next one that is given becomes the vault's.
    case noPassphraseYet
    case emptyPassphrase
    /// The cryptography library failed, probably for lack of memory.
    case cryptography
    case file(FileFailure)
    /// The folder of the sealed files cannot be opened.
    case folderNotOpened(path: String)
    /// The file was written in a newer version of the format, and was not changed.
    case newer(path: String, version: Int)
    /// The file has more than `limit` bytes.
    case tooLong(path: String, limit: Int)

    // MARK: The vault's key

    /// The file `vault.key` is damaged, and was not changed. `folder` has the sealed files that need it.
    case damagedKeyFile(path: String, folder: String, FileDamage)
    /// The source's key is not the one that `vault.key` was made with.
    case otherKey(KeySourceChoice, path: String, folder: String)
    case keySourceDiffers(recorded: KeySourceChoice, configured: KeySourceChoice)
    /// The key is kept by a source that is not available here.
    case keySourceMissing(KeySourceChoice)
    /// The cryptography library failed at unwrapping the key.
    case notUnwrapped
    /// The source that keeps the key does not give it.
    case keptBy(KeySourceChoice, KeyReason)
    /// A source that is not available here was to keep the key.
    case noSuchKeeper(KeySourceChoice)
    /// The source does not take the key.
    case notTaken(KeySourceChoice, KeyReason)
    /// No key file was made.
    case key(KeyReason)
    /// The file `vault.key` at `path` is missing, and `count` sealed sessions in `folder` need it.
    case keyFileMissing(path: String, count: Int, folder: String)
    /// The `count` sealed sessions in `folder` were made with another `vault.key`.
    case foreignSessions(path: String, count: Int, folder: String)
    case noKeyDirectory
    /// The key was not moved to another source.
    case keyStays(VaultReason)

    // MARK: A vault in memory

    /// A vault on disk does not become one in memory.
    case notIntoMemory
    /// Locking would lose the sessions.
    case inMemory
    case noKeyInMemory

    // MARK: Slots

    case notAnAccountName(String)
    case bindingTooLong(account: String)
    case tooLarge(VaultSlot.Kind, account: String)
    case onlySessionsRetire
    /// The file was sealed with another vault's key, and was left as it is.
    case otherVaultsKey(path: String)
    /// The file was renamed to `place`.
    case damaged(path: String, FileDamage, kind: VaultSlot.Kind, place: String)
    /// The file could not be renamed either.
    case damagedInPlace(path: String, FileDamage, FileFailure)
}

/// What is wrong with a sealed file.
public enum FileDamage: Sendable, Equatable {
    case tooShort
    case otherKind
    case invalidVersion
    case invalidLengths
    case changed
    case invalidHeader
    /// It is in the place of another account's file.
    case otherAccount

    // MARK: The vault's key

    case noKeySource
    case noKeyName
    case noParameters
    case noKey
}

/// What the sealed texts are protected by.
public enum VaultProtection: Sendable, Equatable {
    case notOpened
    /// The key's source is not available here.
    case unknown
    case passphrase
    case secretService
    case systemdCredential
    case keyFile(directory: String)
    /// Nothing is on disk. `reason` says why no vault could be made, if one was to be made.
    case memory(reason: VaultReason?)
}
