public import Secrets
public import StrictJSON

/// What may be asked for as the place of the wrapping key (`[vault] key_source`, `ringback vault rekey`).
public enum KeySourceChoice: String, Sendable, CaseIterable {
    case auto
    case secretService = "secret-service"
    case systemdCredential = "systemd-credential"
    case passphrase
    case keyFile = "key-file"
    /// Nothing is written to disk.
    case memory
}

/// Holds wrapping keys: 32 random bytes each (or derived from a passphrase), by an identifier that the vault chose.
public protocol KeySource: Sendable {
    var choice: KeySourceChoice { get }
    /// True if a new key can be put there now without asking the person anything. Cheap where the answer is no.
    func canHoldNewKey() async -> Bool
    /// Makes a key and keeps it. `parameters` go into the vault key's header, in clear, and come back at `fetch`.
    func create(_ id: String, passphrase: Secret?) async throws(KeySourceError) -> (key: Secret, parameters: JSONObject)
    /// The key of that identifier.
    func fetch(_ id: String, parameters: JSONObject, passphrase: Secret?) async throws(KeySourceError) -> Secret
    /// Lets a key go that is no longer used. True if it is not there any more, whoever removed it.
    @discardableResult func remove(_ id: String, parameters: JSONObject) async -> Bool
    /// What it protects against and what not, in a sentence for people.
    var protects: String { get }
}

/// Why a source gave no key. Reasons are sentences for people.
public enum KeySourceError: Error, Sendable, Equatable {
    /// It is not there: no service, no credential, no file.
    case absent(reason: String)
    /// It is there and does not open.
    case locked(reason: String)
    /// It asks for a passphrase, and none was given.
    case needsPassphrase
    case failed(reason: String)
}
