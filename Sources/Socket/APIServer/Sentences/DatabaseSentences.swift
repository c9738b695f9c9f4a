internal import SessionVault

extension DatabaseReason: Sentence {
    var sentence: String {
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
