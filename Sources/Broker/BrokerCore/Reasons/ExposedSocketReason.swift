/// Why a socket is not exposed or not revoked, or what happened to the record of exposed sockets.
public enum ExposedSocketReason: Sendable, Equatable {
    /// `place` is where the configuration defines a socket of this name.
    case configured(String, place: String)
    case exposedAlready(String)
    case tooMany(most: Int)
    /// The state directory cannot be written, so that the socket was not made.
    case notRecorded(String)
    /// It is closed, but the state directory cannot be written: the next start may open it again.
    case endNotRecorded(String)
    case unknown
    case closedAlready(String)
    /// Why it is closed. `place` is where the configuration defines it, if it does.
    case closed(ClosedSocket.Reason, place: String?)
    /// The error has no reason.
    case unknownCause
    /// What a member of the order has to be.
    case wrongOrder(RequestReason)
    /// A member of the order is wrong.
    case wrongMember(String, Reason)
    case recordLost
    /// `place` is where the damaged record was moved to, if it could be.
    case recordDamaged(place: String?)
}
