/// Why a database cannot be reached, or did not do what was asked.
public enum DatabaseReason: Error, Sendable, Equatable {
    /// libpq is not installed, or too old.
    case noLibrary
    /// The source of the password gave none, or the server asked for one and there is none.
    case noPassword
    /// The name is not known, there is no route, or nobody listens.
    case noConnection
    /// The server has no TLS, or its certificate is not the one of its name by an authority that is known.
    case tls
    /// The server does not let the role in (SQLSTATE class 28).
    case authentication
    /// The process that answers on this machine belongs to another user than the database's; nil if it is not known.
    case foreignServer(uid: UInt32?)
    /// The server asks for the password in a form that tells it, and has not proved its name.
    case weakAuthentication
    /// The server sends more than is taken, or asks for a proof that takes too long.
    case tooMuch
    /// No result in time. The statement may have taken effect.
    case timedOut
    /// The connection ended. The statement may have taken effect.
    case closed
    /// No server takes changes.
    case readOnly
    /// The server is starting or ending, or has no connection left. The statement has had no effect.
    case notNow
    case noSchema
    case otherSchema(Int)
    case notPermitted
    case noRoom
    /// The server refused the statement, which has had no effect.
    case refused(state: String)
    case malformed
    case busy
    /// The caller was cancelled, or the client is shut down.
    case cancelled
}

extension DatabaseReason {
    /// The database has answered, and does not do it. Otherwise there was no answer, or none in time.
    package var isRefusal: Bool {
        switch self {
        case .readOnly, .noSchema, .otherSchema, .notPermitted, .noRoom, .refused, .malformed: true
        default: false
        }
    }

    package var sentence: String {
        switch self {
        case .noLibrary: "libpq 14 or later is not installed."
        case .noPassword: "There is no password for it."
        case .noConnection: "No connection can be made."
        case .tls: "It has no TLS, or its certificate is not valid for its name."
        case .authentication:
            "It does not let this host's role in. If another host has removed this one, it needs a new invitation."
        case .foreignServer(let uid?):
            "The process that answers there belongs to the user with the uid \(uid), and not to root or the database. If "
                + "that is right, set store_uid = \(uid) in [vault]."
        case .foreignServer:
            "The owner of the process that answers there cannot be determined. Use TLS with sslmode=verify-full."
        case .weakAuthentication:
            "It asks for the password in clear or by MD5. Set scram-sha-256 in its pg_hba.conf, or use TLS with "
                + "sslmode=verify-full."
        case .tooMuch: "It sent more data than is accepted."
        case .timedOut: "It did not answer in time."
        case .closed: "The connection ended."
        case .readOnly: "It takes no changes at the moment."
        case .notNow: "It is starting or ending, or has no connection left."
        case .noSchema: "It has no schema of Ringback's."
        case .otherSchema(let version): "Its schema is of version \(version), which is not known here."
        case .notPermitted: "This host's role lacks a right."
        case .noRoom: "Its disk is full."
        case .refused(let state): "It refused a statement with SQLSTATE \(state)."
        case .malformed: "Its answer is not of the form that was asked for."
        case .busy: "Too much waits for it already."
        case .cancelled: "The daemon ends."
        }
    }
}
