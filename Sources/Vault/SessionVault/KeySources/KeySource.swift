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
