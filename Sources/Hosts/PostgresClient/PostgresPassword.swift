public import RingbackBase

extension DatabaseReason {
    var endsConnection: Bool {
        switch self {
        case .refused, .otherSchema, .malformed: false
        default: true
        }
    }

    static func of(state: String, detail: String?) -> DatabaseReason {
        switch state {
        // The classes 08 (connection), 57P (the server is ended or starts) and 53300 (no connection left).
        case _ where state.hasPrefix("28"): .authentication
        case _ where state.hasPrefix("57P0"), "53300": .notNow
        case _ where state.hasPrefix("08"): .closed
        case "25006": .readOnly
        case "RB001": .otherSchema(detail.flatMap { Int($0) } ?? 0)
        default: .refused(state: state)
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
    func value() async throws(DatabaseReason) -> Secret? {
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
