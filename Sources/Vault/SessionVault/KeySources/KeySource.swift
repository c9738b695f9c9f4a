public import Secrets
public import StrictJSON

/// Keeps wrapping keys of 32 bytes (random, or derived from a passphrase) under identifiers that the vault chooses.
/// Failures are thrown as ``KeySourceError``.
public protocol KeySource: Sendable {
    var choice: KeySourceChoice { get }
    /// True if a new key can be stored now without a prompt. Must be fast if the result is false.
    func canHoldNewKey() async -> Bool
    /// Makes a key and stores it. `parameters` are stored unencrypted in the header of `vault.key` and passed to
    /// `fetch`.
    func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> (key: Secret, parameters: JSONObject)
    /// The key with this identifier.
    func fetch(_ id: String, parameters: JSONObject, passphrase: Secret?) async throws(KeySourceError) -> Secret
    /// Removes a key that is no longer used. True if it does not exist any more.
    @discardableResult func remove(_ id: String, parameters: JSONObject) async -> Bool
    /// The protection of a vault whose key this source keeps.
    var protection: VaultProtection { get }
}

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
