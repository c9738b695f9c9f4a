public import RingbackBase

public enum PostgresFailure: Error, Sendable, Equatable {
    /// libpq is not installed, or too old.
    case noLibrary
    /// The source of the password gave none, or the server asked for one and there is none.
    case noPassword
    /// No connection could be made: the name is not known, no route, or nobody listens.
    case noConnection
    /// The server has no TLS, or its certificate is not the one of its name by an authority that is known.
    case tls
    /// The server does not let the role in (SQLSTATE class 28).
    case authentication
    /// The process that answers on this machine belongs to another user than the database's; nil: to an unknown one.
    case foreignServer(uid: UInt32?)
    /// The server asks for the password in a form that tells it, and has not proved its name.
    case weakAuthentication
    /// The server sends more than is taken, or asks for a proof that takes too long.
    case tooMuch
    /// No result in time. The statement may have taken effect.
    case timedOut
    /// The connection ended. The statement may have taken effect.
    case closed
    /// No server of the URL takes changes.
    case readOnly
    /// The server is starting or ending, or has no connection left. The statement has had no effect.
    case notNow(state: String)
    /// The server refused the statement, which has had no effect. `number` is the detail of an error of Ringback's own.
    case refused(state: String, number: Int64?)
    case malformed
    /// The caller was cancelled, or the client is shut down.
    case cancelled
    case busy

    var endsConnection: Bool {
        switch self {
        case .refused, .malformed: false
        default: true
        }
    }

    static func of(state: String, detail: String?) -> PostgresFailure {
        switch state {
        // The classes 08 (connection), 57P (the server is ended or starts) and 53300 (no connection left).
        case _ where state.hasPrefix("28"): .authentication
        case _ where state.hasPrefix("57P0"), "53300": .notNow(state: state)
        case _ where state.hasPrefix("08"): .closed
        case "25006": .readOnly
        default: .refused(state: state, number: state.hasPrefix("RB") ? detail.flatMap { Int64($0) } : nil)
        }
    }
}

public indirect enum PostgresPassword: Sendable {
    /// There is none: the server trusts the user of a Unix socket, or asks for nothing.
    case none
    /// From `.pgpass`, by libpq's own rules: the file that the URL names, else `~/.pgpass`.
    case passwordFile
    /// Asked for each time when a connection is made. Nil is the same as no password.
    case given(@Sendable () async -> Secret?)
    /// The same, but nil means that the other source is asked.
    case first(@Sendable () async -> Secret?, else: PostgresPassword)

    /// The first line of a file that only its owner can read.
    public static func file(_ path: String) -> PostgresPassword { .given { PasswordLine.read(path) } }

    var mayUsePasswordFile: Bool {
        switch self {
        case .passwordFile: true
        case .none, .given: false
        case .first(_, let other): other.mayUsePasswordFile
        }
    }

    /// The password that libpq is given; nil if it is to have none, or finds it itself. Throws `noPassword`.
    func value() async throws(PostgresFailure) -> Secret? {
        switch self {
        case .none, .passwordFile: return nil
        case .given(let ask):
            guard let secret = await ask() else { throw .noPassword }
            return secret
        case .first(let ask, let other):
            if let secret = await ask() { return secret }
            return try await other.value()
        }
    }
}
