internal import Cryptography
internal import Glibc
public import RingbackBase

/// Keeps wrapping keys of 32 bytes (random, or derived from a passphrase) under identifiers that the vault chooses.
/// Failures are thrown as ``KeySourceError``.
public protocol KeySource: Sendable {
    var choice: KeySourceChoice { get }
    /// True if a new key can be stored now without a prompt. Must be fast if the result is false.
    func canHoldNewKey() async -> Bool
    /// Makes a key and stores it. `parameters` are stored unencrypted in `vault.key` and passed to `fetch`.
    func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> MadeKey
    func fetch(_ id: String, parameters: JSONObject, passphrase: Secret?) async throws(KeySourceError) -> Secret
    /// True if the key does not exist any more.
    @discardableResult func remove(_ id: String, parameters: JSONObject) async -> Bool
    /// Of a vault whose key this source keeps.
    var protection: VaultProtection { get }
}

public typealias MadeKey = (key: Secret, parameters: JSONObject)

/// Why a key source failed.
public enum KeySourceError: Error, Sendable, Equatable {
    /// The service, the credential or the file does not exist.
    case absent(KeyReason)
    /// The service, the credential or the file exists, but cannot be used now.
    case locked(KeyReason, obstacle: VaultObstacle? = nil)
    /// A passphrase is needed and none was given.
    case needsPassphrase
    case failed(KeyReason)
}

/// Why a key is requested. A source that would have to show a prompt (a keyring's window) does so only for a user's
/// request.
public enum KeyRequest {
    /// True in a task that handles a user's request, and in its child tasks.
    @TaskLocal public static var isInteractive = false
}

/// Derives the key from a passphrase with scrypt; it is not stored. Salt and cost are in the header of `vault.key`.
public struct PassphraseSource: KeySource {
    private static let saltLength = 32
    private let cost: Scrypt.Cost

    public init() { self.init(cost: .standard) }

    /// For tests.
    init(cost: Scrypt.Cost) { self.cost = cost }
    public var choice: KeySourceChoice { .passphrase }
    public var protection: VaultProtection { .passphrase }

    /// The user would have to be asked for a passphrase.
    public func canHoldNewKey() async -> Bool { false }

    public func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> MadeKey {
        guard let passphrase, !passphrase.isEmpty else { throw .needsPassphrase }
        let salt = RandomToken.bytes(PassphraseSource.saltLength)
        let parameters: JSONObject = [
            "kdf": "scrypt", "salt": Base64URL.encode(salt), "n": cost.n, "r": cost.r, "p": cost.p,
        ]
        return (try PassphraseSource.derive(passphrase, salt, cost), parameters)
    }

    public func fetch(
        _ id: String, parameters: JSONObject, passphrase: Secret?
    ) async throws(KeySourceError) -> Secret {
        guard let passphrase, !passphrase.isEmpty else { throw .needsPassphrase }
        // The header cannot be authenticated before the key is known. The type `Scrypt.Cost` limits the cost.
        guard parameters["kdf"]?.string == "scrypt", let n = parameters["n"]?.integer,
            let r = parameters["r"]?.integer, let p = parameters["p"]?.integer,
            let cost = Scrypt.Cost(validN: n, r: r, p: p),
            let salt = parameters["salt"]?.string.flatMap({ Base64URL.decode($0) }), (16...64).contains(salt.count)
        else { throw .failed(.invalidParameters) }
        return try PassphraseSource.derive(passphrase, salt, cost)
    }

    /// Nothing is stored.
    public func remove(_ id: String, parameters: JSONObject) async -> Bool { true }

    private static func derive(
        _ passphrase: Secret, _ salt: [UInt8], _ cost: Scrypt.Cost
    ) throws(KeySourceError) -> Secret {
        do throws(CryptographyError) {
            return try Scrypt.derive(passphrase, salt: salt, cost: cost)
        } catch {
            throw .failed(.outOfMemory)
        }
    }
}

/// Keeps wrapping keys in the desktop's keyring, which the closures call: this module does not depend on D-Bus. Keys
/// are stored as base64url text, which every keyring accepts and can display.
public struct SecretServiceSource: KeySource {
    private let isAvailable: @Sendable () async -> Bool
    private let put: @Sendable (_ id: String, _ secret: Secret) async throws(KeySourceError) -> Void
    private let get: @Sendable (_ id: String) async throws(KeySourceError) -> Secret
    private let delete: @Sendable (_ id: String) async -> Bool

    /// `available` is true if a keyring can store an item now without a prompt. `create` throws `locked` if the user
    /// did not unlock the keyring, `read` throws `absent` if there is no such item or no keyring, and `delete` is true
    /// if the item does not exist any more.
    public init(
        available: @escaping @Sendable () async -> Bool,
        create: @escaping @Sendable (_ id: String, _ secret: Secret) async throws(KeySourceError) -> Void,
        read: @escaping @Sendable (_ id: String) async throws(KeySourceError) -> Secret,
        delete: @escaping @Sendable (_ id: String) async -> Bool
    ) {
        isAvailable = available
        put = create
        get = read
        self.delete = delete
    }

    public var choice: KeySourceChoice { .secretService }
    public var protection: VaultProtection { .secretService }
    public func canHoldNewKey() async -> Bool { await isAvailable() }

    public func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> MadeKey {
        let key = Secret(bytes: RandomToken.bytes(SealedBox.keyLength))
        var text = key.withBytes { span in unsafe span.withUnsafeBytes { unsafe Base64URL.encodeToBytes($0) } }
        defer { text.erase() }
        try await put(id, Secret(bytes: text))
        // Read the key back: if the keyring lost or changed it, every session would be lost.
        let kept = try? await fetch(id, parameters: JSONObject(), passphrase: nil)
        guard kept == key else {
            _ = await delete(id)
            throw .failed(.keyringChangedKey)
        }
        return (key, JSONObject())
    }

    public func fetch(
        _ id: String, parameters: JSONObject, passphrase: Secret?
    ) async throws(KeySourceError) -> Secret {
        var text = try await get(id).revealedBytes()
        defer { text.erase() }
        guard var bytes = Base64URL.decode(text[...]), bytes.count == SealedBox.keyLength else {
            throw .failed(.notAKeyInKeyring)
        }
        defer { bytes.erase() }
        return Secret(bytes: bytes)
    }

    public func remove(_ id: String, parameters: JSONObject) async -> Bool { await delete(id) }
}

/// Derives the key from a credential that systemd passes to the unit (`LoadCredential=`, `LoadCredentialEncrypted=`). A
/// digest of it is recorded, so that another credential can be distinguished from a damaged vault.
public struct SystemdCredentialSource: KeySource {
    public static let credential = "ringback-vault-key"
    private static let minimumLength = 32
    private static let maximumLength = 1 << 20
    private let directory: String?

    /// `directory` is the value of `CREDENTIALS_DIRECTORY`.
    public init(directory: String?) { self.directory = directory }
    public var choice: KeySourceChoice { .systemdCredential }
    public var protection: VaultProtection { .systemdCredential }
    public func canHoldNewKey() async -> Bool { (try? read()) != nil }

    public func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> MadeKey {
        let credential = try read()
        let parameters: JSONObject = ["credential": try SystemdCredentialSource.identifier(credential)]
        return (try SystemdCredentialSource.derive(credential, "key 1 \(id)", 32), parameters)
    }

    public func fetch(
        _ id: String, parameters: JSONObject, passphrase: Secret?
    ) async throws(KeySourceError) -> Secret {
        let credential = try read()
        guard parameters["credential"]?.string == (try SystemdCredentialSource.identifier(credential)) else {
            throw .locked(.otherCredential)
        }
        return try SystemdCredentialSource.derive(credential, "key 1 \(id)", 32)
    }

    /// The credential belongs to the unit.
    public func remove(_ id: String, parameters: JSONObject) async -> Bool { true }

    private func read() throws(KeySourceError) -> Secret {
        let name = SystemdCredentialSource.credential
        guard let directory, !directory.isEmpty else { throw .absent(.noCredentials) }
        var bytes: [UInt8]
        do throws(FileFailure) {
            let place = try SyncedDirectory(opening: directory)
            guard let found = try place.read(name, atMost: SystemdCredentialSource.maximumLength) else {
                throw FileFailure(action: .read, path: "\(directory)/\(name)", code: ENOENT)
            }
            bytes = found
        } catch {
            throw error.code == ENOENT ? .absent(.noCredential) : .failed(.file(error))
        }
        defer { bytes.erase() }
        guard bytes.count >= SystemdCredentialSource.minimumLength else { throw .failed(.credentialTooShort) }
        guard bytes.count <= SystemdCredentialSource.maximumLength else { throw .failed(.credentialTooLarge) }
        return Secret(bytes: bytes)
    }

    private static func identifier(_ credential: Secret) throws(KeySourceError) -> String {
        Digest.hex(try derive(credential, "identifier 1", 16).revealedBytes())
    }

    private static func derive(
        _ credential: Secret, _ purpose: String, _ length: Int
    ) throws(KeySourceError) -> Secret {
        do throws(CryptographyError) {
            return try KeyDerivation.derive(
                from: credential, purpose: "ringback vault systemd-credential \(purpose)", length: length)
        } catch {
            throw .failed(.cryptography)
        }
    }
}

/// Keeps wrapping keys in files of mode 0600, one for each identifier, in a directory of mode 0700 outside the state
/// directory: a copy of that (a backup, a synchronized folder) does not contain the key. This does not protect against
/// programs of the same user.
public struct KeyFileSource: KeySource {
    private static let suffix = ".key"
    /// 32 bytes in base64url and a line feed.
    private static let fileSize = 44
    public let directory: String
    private let state: String

    /// `directory` is created with the first key; by default `ringback/keys` in the user's data directory. It must not
    /// be in `state`, the state directory.
    public init(directory: String, outside state: String) {
        self.directory = directory
        self.state = state
    }

    public var choice: KeySourceChoice { .keyFile }
    public var protection: VaultProtection { .keyFile(directory: directory) }

    public func canHoldNewKey() async -> Bool {
        guard let existing = KeyFileSource.deepestExisting(directory) else { return false }
        return unsafe access(existing, W_OK | X_OK) == 0 && !isInsideState(existing)
    }

    public func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> MadeKey {
        try check(id)
        try refuseInsideState()
        let key = Secret(bytes: RandomToken.bytes(SealedBox.keyLength))
        let place = try opened(isMade: true)
        var text = key.withBytes { span in unsafe span.withUnsafeBytes { unsafe Base64URL.encodeToBytes($0) } }
        text.append(UInt8(ascii: "\n"))
        defer { text.erase() }
        do throws(FileFailure) {
            try place.makeNew(text, as: id + KeyFileSource.suffix)
        } catch {
            throw .failed(.file(error))
        }
        return (key, JSONObject())
    }

    public func fetch(
        _ id: String, parameters: JSONObject, passphrase: Secret?
    ) async throws(KeySourceError) -> Secret {
        try check(id)
        try refuseInsideState()
        let place = try opened(isMade: false)
        let name = id + KeyFileSource.suffix
        var text: [UInt8]
        do throws(FileFailure) {
            guard let found = try place.readPrivate(name, atMost: KeyFileSource.fileSize) else {
                throw FileFailure(action: .read, path: "\(directory)/\(name)", code: ENOENT)
            }
            text = found
        } catch {
            throw KeyFileSource.refusal(error)
        }
        defer { text.erase() }
        guard text.count == KeyFileSource.fileSize, text.last == UInt8(ascii: "\n"),
            var bytes = Base64URL.decode(text.dropLast()), bytes.count == SealedBox.keyLength
        else { throw .failed(.noKey(path: "\(directory)/\(name)")) }
        defer { bytes.erase() }
        return Secret(bytes: bytes)
    }

    public func remove(_ id: String, parameters: JSONObject) async -> Bool {
        guard VaultKeyFile.isKeyID(id) else { return true }
        do throws(FileFailure) {
            let place = try SyncedDirectory(opening: directory)
            let name = id + KeyFileSource.suffix
            // A temporary file that a killed process left contains the key too.
            for name in [name, name + SyncedDirectory.temporarySuffix] where try place.remove(name) { try place.sync() }
            return true
        } catch {
            return error.code == ENOENT
        }
    }

    private func check(_ id: String) throws(KeySourceError) {
        // The identifier becomes a file name.
        guard VaultKeyFile.isKeyID(id) else { throw .failed(.notAnIdentifier(String(id.prefix(64)))) }
    }

    /// An unsafe directory gives `locked`, not `failed`: the key exists, but the user has to fix the permissions.
    private func opened(isMade: Bool) throws(KeySourceError) -> SyncedDirectory {
        let place: SyncedDirectory
        do throws(FileFailure) {
            if isMade { try SyncedDirectory.make(directory) }
            place = try SyncedDirectory(opening: directory)
        } catch {
            let isLink = error.code == ELOOP || error.code == ENOTDIR
            if isLink { throw .locked(.notADirectory(path: directory)) }
            throw isMade ? .failed(.file(error)) : KeyFileSource.refusal(error)
        }
        guard place.isPrivate(".") else {
            throw .locked(.openToOthers(path: directory), obstacle: .openToOthers(path: directory))
        }
        return place
    }

    private static func refusal(_ failure: FileFailure) -> KeySourceError {
        failure.code == ENOENT ? .absent(.missing(path: failure.path)) : .failed(.file(failure))
    }

    private func refuseInsideState() throws(KeySourceError) {
        guard let existing = KeyFileSource.deepestExisting(directory), isInsideState(existing) else { return }
        throw .locked(.insideState(path: directory))
    }

    private static func deepestExisting(_ path: String) -> String? {
        var path = path[...]
        while unsafe access(String(path), F_OK) != 0 {
            guard let slash = path.lastIndex(of: "/") else { return nil }
            path = slash == path.startIndex ? "/" : path[..<slash]
            guard path != "/" else { break }
        }
        return path.isEmpty ? nil : String(path)
    }

    /// Compares every parent directory by device and inode, because links and mounts give other names.
    private func isInsideState(_ path: String) -> Bool {
        var wanted = stat()
        guard unsafe stat(state, &wanted) == 0 else { return false }
        var path = path
        var below = stat()
        // A limit for the loop; no path has so many levels.
        for level in 0..<1_000 {
            var here = stat()
            guard unsafe stat(path, &here) == 0 else { return false }
            if here.st_dev == wanted.st_dev, here.st_ino == wanted.st_ino { return true }
            // The root directory is its own parent.
            if level > 0, here.st_dev == below.st_dev, here.st_ino == below.st_ino { return false }
            below = here
            path += "/.."
        }
        return false
    }
}

/// The unencrypted header of `vault.key`, which holds the random data key of all sessions, wrapped by a key of the
/// source that the header names. It is authenticated only after the key was unwrapped.
struct VaultKeyFile: Sendable, Equatable {
    static let name = "vault.key"
    /// In bytes.
    static let maximumSize = SealedFile.maximumHeader + 4_096
    var source: KeySourceChoice
    /// The wrapping key's identifier in its source: hexadecimal digits, because sources use it in names.
    var keyID: String
    /// Parameters of the source.
    var parameters: JSONObject

    static func newKeyID() -> String { Digest.hex(RandomToken.bytes(16)) }

    static func isKeyID(_ text: String) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    }

    var header: JSONObject { ["source": source.rawValue, "id": keyID, "parameters": parameters] }

    /// The content of the file with the wrapped data key.
    func sealed(_ dataKey: SealingKey, with wrappingKey: Secret) throws(CryptographyError) -> [UInt8] {
        try SealedFile(header: header, text: dataKey.secret).sealed(.vaultKey, with: SealingKey(wrappingKey))
    }

    /// The data key of a file. Throws `foreign` if the wrapping key is not the one with which the file was made.
    static func open(_ bytes: [UInt8], with wrappingKey: Secret) throws(SealedFile.Failure) -> SealingKey {
        let key = try SealedFile.Failure.mapping { () throws(CryptographyError) in try SealingKey(wrappingKey) }
        let file = try SealedFile.read(bytes, .vaultKey, key: key)
        guard file.text.count == SealedBox.keyLength else { throw .damaged(.noKey) }
        return try SealedFile.Failure.mapping { () throws(CryptographyError) in try SealingKey(file.text) }
    }
}

extension VaultKeyFile {
    init(parsing bytes: [UInt8]) throws(SealedFile.Failure) {
        let parts = try SealedFile.split(bytes, .vaultKey)
        guard let header = (try? JSON(parsing: parts.header))?.object else { throw .damaged(.invalidHeader) }
        try self.init(header: header)
    }

    init(header: JSONObject) throws(SealedFile.Failure) {
        guard let source = header["source"]?.string.flatMap(KeySourceChoice.init(rawValue:)),
            source != .auto, source != .memory
        else { throw .damaged(.noKeySource) }
        guard let keyID = header["id"]?.string, VaultKeyFile.isKeyID(keyID) else { throw .damaged(.noKeyName) }
        guard let parameters = header["parameters"]?.object else { throw .damaged(.noParameters) }
        self.init(source: source, keyID: keyID, parameters: parameters)
    }
}
