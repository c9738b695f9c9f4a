/// An exposed socket that is closed although programs may expect it. It is listed with the open ones until it is open
/// again, is revoked, or is removed from the configuration.
public struct ClosedSocket: Sendable, Equatable {
    public enum Reason: String, Sendable, CaseIterable {
        /// Its table is still in the configuration. The socket stays closed until the table changes.
        case revoked, expired
        /// The record of what was revoked is lost, so this socket may have been revoked. It stays closed until its
        /// table changes.
        case forgotten
        /// A socket that a call made has the name of its table.
        case nameTaken = "name_taken"
        /// An account that it showed is now configured for another provider or client.
        case accountChanged = "account_changed"
        /// The socket could not be opened.
        case failed
    }

    public let exposedSocket: ExposedSocket
    public let reason: Reason
    /// Why it is closed, as text for the user.
    public let detail: String
    /// The directory that is open to others, if it could not be opened for that.
    public let unsafePath: String?

    public var name: String { exposedSocket.name }

    /// True if the user should be told unasked. What was revoked or has expired is closed on purpose.
    public var isTrouble: Bool {
        switch reason {
        case .revoked, .expired: false
        case .forgotten, .nameTaken, .accountChanged, .failed: true
        }
    }

    init(_ exposedSocket: ExposedSocket, failed detail: String, unsafePath: String? = nil) {
        self.exposedSocket = exposedSocket
        self.unsafePath = unsafePath
        reason = .failed
        self.detail = detail
    }

    /// - Parameter reason: not `failed`, which needs a cause of its own.
    init(_ exposedSocket: ExposedSocket, _ reason: Reason) {
        self.exposedSocket = exposedSocket
        self.reason = reason
        unsafePath = nil
        let place = if case .configuration(let place) = exposedSocket.origin { place } else { "the configuration" }
        detail =
            switch reason {
            case .revoked: "It was revoked. It stays closed until its table is changed, at \(place)."
            case .expired: "Its time is over. It stays closed until its table is changed, at \(place)."
            case .forgotten:
                "The record of what was revoked (exposed-sockets.json in the state directory) was lost or damaged, so "
                    + "this may have been revoked. It stays closed until its table is changed, at \(place)."
            case .nameTaken:
                "A socket of this name was made by a call, and stays as it was. Give the table at \(place) another name, "
                    + "or revoke that socket and have the configuration read again."
            case .accountChanged:
                "An account that it showed is configured for another provider or client now. Make it anew if that is "
                    + "to be shown. It is listed until it is revoked."
            case .failed: "It cannot be opened."
            }
    }
}
