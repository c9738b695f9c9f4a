internal import Cryptography
internal import Encodings
public import Secrets
public import StrictJSON

/// Keeps wrapping keys in the desktop's keyring. The closures do the actual calls, so this module does not depend on
/// D-Bus. Keys are stored as base64url text, which every keyring accepts and can display.
public struct SecretServiceSource: KeySource {
    private let isAvailable: @Sendable () async -> Bool
    private let put: @Sendable (_ id: String, _ secret: Secret) async throws(KeySourceError) -> Void
    private let get: @Sendable (_ id: String) async throws(KeySourceError) -> Secret
    private let delete: @Sendable (_ id: String) async -> Bool

    /// - Parameters:
    ///   - available: true if a keyring exists and can store an item now without a prompt.
    ///   - create: stores a new item; throws `locked` if the user did not unlock the keyring.
    ///   - read: the item with this identifier; throws `absent` if there is no such item or no keyring.
    ///   - delete: true if the item does not exist any more.
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

    public func create(
        _ id: String, passphrase: Secret?
    ) async throws(KeySourceError) -> (key: Secret, parameters: JSONObject) {
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
