/// Why a database cannot be reached, or did not do what it was asked for.
public enum DatabaseReason: Sendable, Equatable {
    /// libpq is not installed, or too old.
    case noLibrary
    /// The source of the password gave none, or the server asked for one and there is none.
    case noPassword
    /// The name is not known, there is no route, or nobody listens.
    case noConnection
    /// The server has no TLS, or its certificate is not the one of its name by an authority that is known.
    case tls
    /// The server does not let the role in.
    case authentication
    /// The process that answers on this machine belongs to another user than the database's; nil if it is not known whose
    /// it is.
    case foreignServer(uid: UInt32?)
    /// The server asks for the password in a form that tells it, and has not proved its name.
    case weakAuthentication
    /// The server sends more than is taken, or asks for a proof that takes too long.
    case tooMuch
    /// There was no answer in time.
    case timedOut
    /// The connection ended.
    case closed
    /// The server takes no changes.
    case readOnly
    /// The server is starting or ending, or has no connection left.
    case notNow
    /// The schema is missing.
    case noSchema
    /// The schema is of another version.
    case otherSchema(Int)
    /// The role lacks a right.
    case notPermitted
    /// The server's disk is full.
    case noRoom
    /// The server refused the statement with this SQLSTATE.
    case refused(state: String)
    /// The answer has not the form that was asked for.
    case malformed
    /// Too much waits for the server already.
    case busy
    /// The daemon ends.
    case cancelled
}

/// The database that hosts share went away, or is back.
public enum DatabaseTurn: Sendable, Equatable {
    case away(DatabaseReason)
    case returned(after: Duration)
}

/// What is known of the database that hosts share.
public struct VaultDatabase: Sendable, Equatable {
    /// Where it is, without a password.
    public var place: String
    /// Why it could not be used when it was asked last; nil if it could.
    public var problem: DatabaseReason?
    /// For how long it could not be used, if it cannot be used now.
    public var away: Duration?
    /// What was changed here and is not in the database yet: the number of slots.
    public var unsent = 0
    /// Whether it tells of changes at once; nil if that is not known.
    public var listens: Bool?
    /// Whether its commits wait for a standby; nil if that is not known.
    public var hasSynchronousStandby: Bool?

    public init(place: String, problem: DatabaseReason? = nil) {
        self.place = place
        self.problem = problem
    }
}
