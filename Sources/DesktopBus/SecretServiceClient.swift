public import Secrets

/// What the Secret Service is like before anything is asked of it.
public enum SecretServiceStatus: Sendable, Equatable {
    /// Nothing can be kept there: no bus, no service, no default collection.
    case unavailable(reason: String)
    /// The default collection is locked: keeping something there would ask the person first.
    case locked
    case unlocked
}

/// The person's keyring (gnome-keyring, KWallet, KeePassXC), as far as Ringback may use it: it keeps, finds and deletes
/// keys of Ringback's own, and cannot ask for anybody else's secret.
///
/// Every call is a conversation of its own over a connection of its own, blocks its thread, and is bounded: some seconds
/// for each step, and ``promptTimeout`` where the person is asked.
public struct SecretServiceClient: Sendable {
    /// The name of the interface's service on the bus.
    static let name = "org.freedesktop.secrets"
    static let label = "Ringback vault key"
    /// Bytes of a secret: keys are small.
    public static let maxSecret = 1_024
    /// What a person is given to answer the keyring's question.
    public static let promptTimeout: Duration = .seconds(90)

    private let place: BusPlace
    private let promptTimeout: Duration

    /// A client for the service on that bus; by default the session bus that the environment names.
    public init(place: BusPlace = .session(), promptTimeout: Duration = SecretServiceClient.promptTimeout) {
        self.place = place
        self.promptTimeout = promptTimeout
    }

    /// True if it may be the identifier of a key: 1 to 128 letters, digits, `.`, `_` and `-`.
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

    /// What can be had without asking the person. A service that is not running but can be started by the bus is
    /// started. Throws ``SecretServiceError/failed(reason:)`` where the service does not keep to its interface.
    public func status() throws(SecretServiceError) -> SecretServiceStatus {
        do throws(SecretServiceError) {
            let conversation = try converse(mayPrompt: false)
            return try conversation.isLocked(try conversation.defaultCollection()) ? .locked : .unlocked
        } catch {
            guard case .unavailable(let reason) = error else { throw error }
            return .unavailable(reason: reason)
        }
    }

    /// The secret that is kept under the identifier. If it is locked: unlocked first, where that needs no question or
    /// `mayPrompt` allows one; else ``SecretServiceError/locked``.
    public func read(id: String, mayPrompt: Bool = false) throws(SecretServiceError) -> Secret {
        let conversation = try converse(id, mayPrompt: mayPrompt)
        return try conversation.read(try conversation.unlockedItem(id))
    }

    /// Keeps a secret in the default collection and makes sure that it is kept. An identifier that is in use is refused:
    /// what is there may be the only copy of a key that is needed.
    public func create(id: String, secret: Secret, mayPrompt: Bool = false) throws(SecretServiceError) {
        guard (1...SecretServiceClient.maxSecret).contains(secret.count) else {
            throw .failed(reason: "a secret has 1 to \(SecretServiceClient.maxSecret) bytes")
        }
        let conversation = try converse(id, mayPrompt: mayPrompt)
        guard try conversation.find(id) == nil else {
            throw .failed(reason: "the keyring holds another key of this identifier")
        }
        let collection = try conversation.defaultCollection()
        if try conversation.isLocked(collection) { try conversation.unlock(collection) }
        try conversation.create(id, secret, in: collection)
        // A session of its own: a value that was garbled on its way would come back as it went.
        let witness = try converse(id, mayPrompt: mayPrompt)
        let item = try witness.unlockedItem(id)
        guard try witness.read(item) == secret else {
            try? witness.delete(item)
            throw .failed(reason: "the keyring did not keep the key as it was given")
        }
    }

    /// Deletes what is kept under the identifier; ``SecretServiceError/notFound`` if nothing is.
    public func delete(id: String, mayPrompt: Bool = false) throws(SecretServiceError) {
        let conversation = try converse(id, mayPrompt: mayPrompt)
        try conversation.delete(try conversation.unlockedItem(id))
        guard try conversation.find(id) == nil else { throw .failed(reason: "the keyring did not delete the key") }
    }

    /// Unlocks what is kept under the identifier; without one, the default collection.
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
