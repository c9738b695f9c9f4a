public import RingbackBase

/// Why a vault cannot be used, or why it does not support an operation. The message is made where it is shown, and no
/// code depends on its wording. The values are paths, account names and numbers, never a key or a sealed text.
public indirect enum VaultReason: Sendable, Equatable {
    /// The vault is closed, and no other reason is known.
    case locked
    case notOpened
    case lockedByUser
    /// The key's source needs a passphrase.
    case needsPassphrase
    /// No passphrase was chosen yet. The next passphrase that is given becomes the vault's passphrase.
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
    /// The cryptography library failed while it unwrapped the key.
    case notUnwrapped
    /// The source that keeps the key could not return it.
    case keptBy(KeySourceChoice, KeyReason)
    /// The source that was chosen to keep the new key is not available here.
    case noSuchKeeper(KeySourceChoice)
    /// The source could not make or store a new key.
    case notTaken(KeySourceChoice, KeyReason)
    /// The key file could not be created.
    case key(KeyReason)
    /// The file `vault.key` at `path` is missing, and `count` sealed sessions in `folder` need it.
    case keyFileMissing(path: String, count: Int, folder: String)
    /// The `count` sealed sessions in `folder` were made with another `vault.key`.
    case foreignSessions(path: String, count: Int, folder: String)
    case noKeyDirectory
    /// The key could not be moved to the new source and stays in the old one.
    case keyStays(VaultReason)

    // MARK: A vault in memory

    /// A vault on disk cannot be changed into a vault in memory.
    case notIntoMemory
    /// A vault in memory cannot be locked, because its sessions would be lost.
    case inMemory
    /// A vault in memory has no key that could be moved.
    case noKeyInMemory

    // MARK: A vault that hosts share

    case databaseAway(DatabaseReason)
    case databaseRefused(DatabaseReason)
    /// This host has no data key of the vault's rows.
    case noHostsKey
    /// The database's role belongs to no host that has joined.
    case noHost
    /// The record of this host's joining is damaged.
    case joiningUnreadable
    /// Another host is changing the slot.
    case heldElsewhere
    /// Another host has changed the slot.
    case changedElsewhere
    /// The right to send a request was over before it was sent.
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
    /// The file was sealed with another vault's key, and was not changed.
    case otherVaultsKey(path: String)
    /// The file is damaged, and was renamed to `place`.
    case damaged(path: String, FileDamage, kind: VaultSlot.Kind, place: String)
    /// The file is damaged, and could not be renamed.
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
    /// By its header the file belongs to another account than its name says.
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
    /// Not known, because the key's source is not available here.
    case unknown
    case passphrase
    case secretService
    case systemdCredential
    case keyFile(directory: String)
    /// Nothing is written to disk. `reason` says why no vault on disk could be made; nil if memory was configured.
    case memory(reason: VaultReason?)
}

/// Why a database cannot be reached, or did not do what it was asked for.
public enum DatabaseReason: Sendable, Equatable {
    /// libpq is not installed, or too old.
    case noLibrary
    /// The source of the password gave none, or the server asked for one and there is none.
    case noPassword
    /// The name is not known, there is no route, or nobody listens.
    case noConnection
    /// The server has no TLS, or its certificate is not the one of its name by an authority that is known.
    case tls
    /// The server does not let the role in.
    case authentication
    /// The process that answers on this machine belongs to another user than the database's; nil if it is not known whose
    /// it is.
    case foreignServer(uid: UInt32?)
    /// The server asks for the password in a form that tells it, and has not proved its name.
    case weakAuthentication
    /// The server sends more than is taken, or asks for a proof that takes too long.
    case tooMuch
    /// There was no answer in time.
    case timedOut
    /// The connection ended.
    case closed
    /// The server takes no changes.
    case readOnly
    /// The server is starting or ending, or has no connection left.
    case notNow
    /// The schema is missing.
    case noSchema
    /// The schema is of another version.
    case otherSchema(Int)
    /// The role lacks a right.
    case notPermitted
    /// The server's disk is full.
    case noRoom
    /// The server refused the statement with this SQLSTATE.
    case refused(state: String)
    /// The answer has not the form that was asked for.
    case malformed
    /// Too much waits for the server already.
    case busy
    /// The daemon ends.
    case cancelled
}

/// The database that hosts share went away, or is back.
public enum DatabaseTurn: Sendable, Equatable {
    case away(DatabaseReason)
    case returned(after: Duration)
}

/// What is known of the database that hosts share.
public struct VaultDatabase: Sendable, Equatable {
    /// Where it is, without a password.
    public var place: String
    /// Why it could not be used when it was asked last; nil if it could.
    public var problem: DatabaseReason?
    /// For how long it could not be used, if it cannot be used now.
    public var away: Duration?
    /// What was changed here and is not in the database yet: the number of slots.
    public var unsent = 0
    /// Whether it tells of changes at once; nil if that is not known.
    public var listens: Bool?
    /// Whether its commits wait for a standby; nil if that is not known.
    public var hasSynchronousStandby: Bool?

    public init(place: String, problem: DatabaseReason? = nil) {
        self.place = place
        self.problem = problem
    }
}
