public import Secrets

/// The state of the Secret Service.
public enum SecretServiceStatus: Sendable, Equatable {
    /// Keys cannot be stored: there is no bus, no service or no default collection.
    case unavailable(reason: String)
    /// The default collection is locked. The service would prompt the user before it stores a key.
    case locked
    case unlocked
}

/// A client of the user's keyring (gnome-keyring, KWallet, KeePassXC). It stores, finds and deletes Ringback's own keys
/// and cannot request secrets of other programs.
///
/// Every call opens a connection of its own, blocks its thread and has a timeout: some seconds for each step, and
/// ``promptTimeout`` for a prompt.
public struct SecretServiceClient: Sendable {
    /// The well-known name of the service.
    static let name = "org.freedesktop.secrets"
    static let label = "Ringback vault key"
    /// The maximum size of a secret in bytes.
    public static let maxSecret = 1_024
    /// How long the user may take to react to the keyring's prompt.
    public static let promptTimeout: Duration = .seconds(90)

    private let place: BusPlace
    private let promptTimeout: Duration

    /// A client for the service on that bus, by default the session bus of the environment.
    public init(place: BusPlace = .session(), promptTimeout: Duration = SecretServiceClient.promptTimeout) {
        self.place = place
        self.promptTimeout = promptTimeout
    }

    /// True if the text is a valid identifier of a key: 1 to 128 letters, digits, `.`, `_` and `-`.
    public static func isIdentifier(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// The state, without prompting the user. A service that is not running is started if the bus can activate it.
    /// Throws ``SecretServiceError/failed(reason:)`` if the service violates its interface.
    public func status() throws(SecretServiceError) -> SecretServiceStatus {
        do throws(SecretServiceError) {
            let conversation = try converse(mayPrompt: false)
            return try conversation.isLocked(try conversation.defaultCollection()) ? .locked : .unlocked
        } catch {
            guard case .unavailable(let reason) = error else { throw error }
            return .unavailable(reason: reason)
        }
    }

    /// The secret stored under the identifier. If it is locked, it is unlocked first; a prompt is shown only if
    /// `mayPrompt` is true. Throws ``SecretServiceError/locked`` or ``SecretServiceError/notFound``.
    public func read(id: String, mayPrompt: Bool = false) throws(SecretServiceError) -> Secret {
        let conversation = try converse(id, mayPrompt: mayPrompt)
        return try conversation.read(try conversation.unlockedItem(id))
    }

    /// Stores a secret in the default collection and reads it back to verify it. Throws `failed` if the identifier is
    /// in use: the stored value may be the only copy of a key that is needed.
    public func create(id: String, secret: Secret, mayPrompt: Bool = false) throws(SecretServiceError) {
        guard (1...SecretServiceClient.maxSecret).contains(secret.count) else {
            throw .failed(reason: "a secret has 1 to \(SecretServiceClient.maxSecret) bytes")
        }
        let conversation = try converse(id, mayPrompt: mayPrompt)
        guard try conversation.find(id) == nil else {
            throw .failed(reason: "the keyring has a key with this identifier already")
        }
        let collection = try conversation.defaultCollection()
        if try conversation.isLocked(collection) { try conversation.unlock(collection) }
        try conversation.create(id, secret, in: collection)
        // A new session with another key: a value that was garbled in transit could otherwise be garbled back when it
        // is read.
        let verification = try converse(id, mayPrompt: mayPrompt)
        let item = try verification.unlockedItem(id)
        guard try verification.read(item) == secret else {
            try? verification.delete(item)
            throw .failed(reason: "the keyring did not store the key unchanged")
        }
    }

    /// Deletes the secret stored under the identifier. Throws ``SecretServiceError/notFound`` if there is none.
    public func delete(id: String, mayPrompt: Bool = false) throws(SecretServiceError) {
        let conversation = try converse(id, mayPrompt: mayPrompt)
        try conversation.delete(try conversation.unlockedItem(id))
        guard try conversation.find(id) == nil else { throw .failed(reason: "the keyring did not delete the key") }
    }

    /// Unlocks the secret stored under the identifier; without one, the default collection. Throws
    /// ``SecretServiceError``.
    public func unlock(id: String? = nil, mayPrompt: Bool = true) throws(SecretServiceError) {
        if let id {
            let conversation = try converse(id, mayPrompt: mayPrompt)
            _ = try conversation.unlockedItem(id)
        } else {
            let conversation = try converse(mayPrompt: mayPrompt)
            let collection = try conversation.defaultCollection()
            if try conversation.isLocked(collection) { try conversation.unlock(collection) }
        }
    }

    private func converse(_ id: String, mayPrompt: Bool) throws(SecretServiceError) -> SecretServiceConversation {
        guard SecretServiceClient.isIdentifier(id) else { throw .failed(reason: "not an identifier of a key") }
        return try converse(mayPrompt: mayPrompt)
    }

    private func converse(mayPrompt: Bool) throws(SecretServiceError) -> SecretServiceConversation {
        do throws(BusFailure) {
            let bus = try BusConnection(place)
            return SecretServiceConversation(
                service: try SecretServiceObjects(bus), promptTimeout: mayPrompt ? promptTimeout : nil)
        } catch {
            throw SecretServiceError(error)
        }
    }
}
