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
    /// Why it is closed.
    public let detail: BrokerCore.Reason
    /// The directory that is open to others, if the socket could not be opened because of that.
    public let unsafePath: String?

    public var name: String { exposedSocket.name }

    /// True if the user should be told without asking. A socket that was revoked or has expired is closed on purpose.
    public var isTrouble: Bool {
        switch reason {
        case .revoked, .expired: false
        case .forgotten, .nameTaken, .accountChanged, .failed: true
        }
    }

    init(_ exposedSocket: ExposedSocket, failed detail: BrokerCore.Reason, unsafePath: String? = nil) {
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
        let place: String? = if case .configuration(let place) = exposedSocket.origin { place } else { nil }
        detail = .exposedSocket(.closed(reason, place: place))
    }
}
