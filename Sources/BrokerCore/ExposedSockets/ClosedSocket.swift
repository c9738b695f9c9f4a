/// An exposure that has no socket, though somebody may look for one: told where the open ones are, until it is open
/// again, taken back, or no longer asked for.
public struct ClosedSocket: Sendable, Equatable {
    public enum Reason: String, Sendable, CaseIterable {
        /// Its table is in the configuration still; while it says the same, nothing opens it.
        case revoked, expired
        /// What was revoked is not known any more, so this may have been. Its table opens nothing while it says the same.
        case forgotten
        /// Its table's name is that of a socket which a call made.
        case nameTaken = "name_taken"
        /// An account that it showed is configured for another provider or client now.
        case accountChanged = "account_changed"
        /// The socket cannot be made.
        case failed
    }

    public let exposedSocket: ExposedSocket
    public let reason: Reason
    /// For people: why, and what to do.
    public let detail: String

    public var name: String { exposedSocket.name }

    /// True if a person should know of it unasked; what was revoked or has expired is as it was meant.
    public var isTrouble: Bool {
        switch reason {
        case .revoked, .expired: false
        case .forgotten, .nameTaken, .accountChanged, .failed: true
        }
    }

    init(_ exposedSocket: ExposedSocket, failed detail: String) {
        self.exposedSocket = exposedSocket
        reason = .failed
        self.detail = detail
    }

    /// - Parameter reason: not `failed`, whose cause is a sentence of its own.
    init(_ exposedSocket: ExposedSocket, _ reason: Reason) {
        self.exposedSocket = exposedSocket
        self.reason = reason
        let place = if case .configuration(let place) = exposedSocket.origin { place } else { "the configuration" }
        let name = exposedSocket.name
        detail =
            switch reason {
            case .revoked: "It was revoked. It stays closed until its table is changed, at \(place)."
            case .expired: "Its time is over. It stays closed until its table is changed, at \(place)."
            case .forgotten:
                "The record of what was revoked (exposed-sockets.json in the state directory) was lost or damaged, so this may have "
                    + "been revoked. It stays closed until its table is changed, at \(place)."
            case .nameTaken:
                "A socket of this name was made by ringback expose, and stays as it was. Give the table at \(place) "
                    + "another name; or run ringback expose revoke \(name), and then ringback reload."
            case .accountChanged:
                "An account that it showed is configured for another provider or client now. Make it anew if that is "
                    + "to be shown; ringback expose revoke \(name) takes this note away."
            case .failed: "It cannot be opened."
            }
    }
}
