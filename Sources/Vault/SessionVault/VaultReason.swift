public import RingbackBase

/// Why a vault cannot be used, or why it does not support an operation: paths, account names and numbers, never a key.
public indirect enum VaultReason: Sendable, Equatable {
    case locked
    case notOpened
    case lockedByUser
    case needsPassphrase
    case noPassphraseYet
    case emptyPassphrase
    case cryptography
    case file(FileFailure)
    case folderNotOpened(path: String)
    case newer(path: String, version: Int)
    case tooLong(path: String, limit: Int)
    // MARK: The vault's key
    /// `folder` has the sealed files that need it.
    case damagedKeyFile(path: String, folder: String, FileDamage)
    /// The source's key is not the one that `vault.key` was made with.
    case otherKey(KeySourceChoice, path: String, folder: String)
    case keySourceDiffers(recorded: KeySourceChoice, configured: KeySourceChoice)
    case keySourceMissing(KeySourceChoice)
    case notUnwrapped
    /// The source that keeps the key could not return it.
    case keptBy(KeySourceChoice, KeyReason)
    case noSuchKeeper(KeySourceChoice)
    /// The source could not make or store a new key.
    case notTaken(KeySourceChoice, KeyReason)
    case key(KeyReason)
    /// `vault.key` at `path` is missing, and `count` sealed sessions in `folder` need it.
    case keyFileMissing(path: String, count: Int, folder: String)
    /// The `count` sealed sessions in `folder` were made with another `vault.key`.
    case foreignSessions(path: String, count: Int, folder: String)
    case noKeyDirectory
    /// The key could not be moved to the new source and stays in the old one.
    case keyStays(VaultReason)
    // MARK: A vault in memory
    case notIntoMemory
    case inMemory
    case noKeyInMemory
    // MARK: A vault that hosts share
    case databaseAway(DatabaseReason)
    case databaseRefused(DatabaseReason)
    case noHostsKey
    case noHost
    case joiningUnreadable
    case heldElsewhere
    case changedElsewhere
    case leaseOver
    /// The row is older than one that this host has seen, and this host does not have that one's content.
    case olderRow
    /// The row does not open with the hosts' key: it was sealed with another one, is of another place, or was changed.
    case foreignRow
    // MARK: Slots
    case notAnAccountName(String)
    case bindingTooLong(account: String)
    case tooLarge(VaultSlot.Kind, account: String)
    case onlySessionsRetire
    case otherVaultsKey(path: String)
    /// The file is damaged, and was renamed to `place`.
    case damaged(path: String, FileDamage, kind: VaultSlot.Kind, place: String)
    case damagedInPlace(path: String, FileDamage, FileFailure)
}

extension VaultReason {
    package var sentence: String {
        switch self {
        case .locked: "The vault is locked."
        case .notOpened: "The vault has not been opened yet."
        case .lockedByUser: "A user locked the vault."
        case .needsPassphrase: "The vault is locked with a passphrase."
        case .noPassphraseYet: "The vault has no passphrase yet: the next one that is given becomes its passphrase."
        case .emptyPassphrase: "The passphrase is empty."
        case .cryptography: KeyReason.cryptography.sentence
        case .file(let failure): failure.sentence
        case .folderNotOpened(let path): "Cannot open \(path)."
        case .newer(let path, let version):
            "\(path) was written by a newer ringbackd (format \(version)) and was not changed. Update ringbackd."
        case .tooLong(let path, let limit): "\(path) is longer than \(limit) bytes, so Ringback did not write it."
        case .damagedKeyFile(let path, let folder, let damage):
            "\(path) is damaged: \(damage.rawValue). It was not changed. Restore it from a backup. Without this file "
                + "the sealed sessions cannot be read. To give them up, move \(path) and \(folder) away."
        case .otherKey(let source, let path, let folder):
            "The key that \(source.rawValue) gives is not the one that \(path) was made with. Restore the right key. "
                + "To give up the sealed sessions, move \(path) and \(folder) away."
        case .keySourceDiffers(let recorded, let configured):
            "The vault's key is kept by \(recorded.rawValue), and the configuration says "
                + "key_source = \"\(configured.rawValue)\"."
        case .keySourceMissing(let source):
            "The vault's key is kept by \(source.rawValue), which is not available here."
        case .notUnwrapped: "The vault's key cannot be unwrapped: the cryptography library failed; try again."
        case .keptBy(let source, let reason): "The vault's key is kept by \(source.rawValue). \(reason.sentence)"
        case .noSuchKeeper(let source): "\(source.rawValue) is not available here to keep the vault's key."
        case .notTaken(let source, let reason): "\(source.rawValue) cannot keep the vault's key. \(reason.sentence)"
        case .key(let reason): reason.sentence
        case .keyFileMissing(let path, let count, let folder):
            "\(path) is missing, and \(count) sealed sessions in \(folder) need it. Restore it from a backup, or move "
                + "the files away and sign in again."
        case .foreignSessions(let path, let count, let folder):
            "\(path) is not the one that the \(count) sealed sessions in \(folder) were made with. Restore the right "
                + "one, or move those files away and sign in again."
        case .noKeyDirectory: "There is no directory for a key file."
        case .keyStays(let reason): "\(reason.sentence) The vault's key stays where it was."
        case .notIntoMemory:
            "A vault on disk cannot be changed into one in memory. Set key_source = \"memory\" and restart; the sealed "
                + "sessions stay where they are."
        case .inMemory: "The sessions are in memory only and would be lost by locking."
        case .noKeyInMemory: "The sessions are in memory only: there is no key. Set key_source and restart."
        case .notAnAccountName(let name): "\"\(name)\" is no account's name."
        case .bindingTooLong(let account): "What \(account) is bound to is longer than 8,192 bytes."
        case .tooLarge(let kind, let account): "The \(kind.word) of \(account) is larger than 1 MiB."
        case .onlySessionsRetire: "Only a session can be retired."
        case .otherVaultsKey(let path):
            "\(path) was sealed with another vault's key and was left as it is. Restore the vault.key that belongs to "
                + "it, or move the file away and sign in again."
        case .databaseAway(let reason): "The vault's database cannot be reached: \(reason.sentence)"
        case .databaseRefused(let reason): "The vault's database did not do what was asked: \(reason.sentence)"
        case .noHostsKey: "This host does not have the key of the vault that hosts share."
        case .noHost:
            "The role with which this host connects to the vault's database belongs to no host that has joined."
        case .joiningUnreadable: "The record of how this host joined the others cannot be read."
        case .heldElsewhere: "Another host is changing this at the moment."
        case .changedElsewhere: "Another host has changed this meanwhile."
        case .leaseOver: "The request was not sent, since this host's turn was over before."
        case .olderRow:
            "The vault's database has an older record than this host has seen. It was not used. If it stays so, sign in "
                + "again."
        case .foreignRow:
            "The vault's database has a record that was not sealed for this place. It was not used. If it stays so, sign in "
                + "again."
        case .damaged(let path, let damage, let kind, let place):
            "\(path) cannot be read: \(damage.rawValue). It was renamed to \(place); \(kind.remedy)."
        case .damagedInPlace(let path, let damage, let failure):
            "\(path) cannot be read: \(damage.rawValue). \(failure.sentence)"
        }
    }
}

/// What is wrong with a sealed file. The raw values end a sentence, without a full stop.
public enum FileDamage: String, Sendable {
    case tooShort = "it is too short"
    case otherKind = "it is not a file of this kind"
    case invalidVersion = "its version number is invalid"
    case invalidLengths = "its lengths do not fit"
    case changed = "its content was changed"
    case invalidHeader = "its header is no JSON object"
    case otherAccount = "it belongs to another account"
    // MARK: The vault's key
    case noKeySource = "it names no key source"
    case noKeyName = "it names no key"
    case noParameters = "it has no parameters"
    case noKey = "it holds no key"
}

/// What the sealed texts are protected by.
public enum VaultProtection: Sendable, Equatable {
    case notOpened
    case unknown
    case passphrase
    case secretService
    case systemdCredential
    case keyFile(directory: String)
    /// `reason` says why no vault on disk could be made; nil if memory was configured.
    case memory(reason: VaultReason?)
}

extension VaultProtection {
    /// Without a full stop, as it is served.
    package var sentence: String {
        switch self {
        case .notOpened: "nothing is readable until it is opened"
        case .unknown: ""
        case .passphrase:
            "nobody reads the sealed sessions without the passphrase while the vault is locked; the protection is as "
                + "strong as the passphrase is hard to guess"
        case .secretService:
            "nobody reads the sealed sessions without your keyring's password while the keyring is locked; programs of "
                + "yours can read the key while it is unlocked"
        case .systemdCredential:
            "a copy of the state directory alone opens nothing; the key is as safe as the credential that systemd "
                + "holds, bound to this machine where it is an encrypted one"
        case .keyFile(let directory):
            "a copy of the state directory alone opens nothing; whoever can read your files can read the key in "
                + "\(directory) as well"
        case .memory(let reason):
            "nothing is written to disk; sessions end with the daemon"
                + (reason.map { ". No vault could be made: \($0.sentence)" } ?? "")
        }
    }
}

/// The database that hosts share went away, or is back.
public enum DatabaseTurn: Sendable, Equatable {
    case away(DatabaseReason)
    case returned(after: Duration)
}

/// What is known of the database that hosts share.
public struct VaultDatabase: Sendable, Equatable {
    /// Without a password.
    public var place: String
    /// Nil if it could be used when it was asked last.
    public var problem: DatabaseReason?
    /// For how long it cannot be used.
    public var away: Duration?
    /// The number of slots whose changes are not in the database yet.
    public var unsent = 0
    /// It reports changes at once; nil if that is not known.
    public var listens: Bool?
    /// Its commits wait for a standby; nil if that is not known.
    public var hasSynchronousStandby: Bool?

    public init(place: String) { self.place = place }
}

extension VaultSlot.Kind {
    fileprivate var word: String {
        switch self {
        case .session: "session"
        case .registration: "registration"
        case .people: "people"
        case .provider: "provider"
        case .hostsKey: "hostskey"
        }
    }

    /// What replaces a damaged file.
    fileprivate var remedy: String {
        switch self {
        case .session: "sign in again"
        case .registration: "register again"
        case .people: "it is written again"
        case .provider: "it is learned again"
        case .hostsKey: "get the key from another host again"
        }
    }
}
