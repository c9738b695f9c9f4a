internal import PostgresClient
internal import SessionVault
internal import SharedVault

extension RowError {
    /// What a failure means for the rows.
    init(_ failure: PostgresFailure) {
        switch failure {
        case .noLibrary: self = .unreachable(.noLibrary)
        case .noPassword: self = .unreachable(.noPassword)
        case .noConnection: self = .unreachable(.noConnection)
        case .tls: self = .unreachable(.tls)
        case .authentication: self = .unreachable(.authentication)
        case .foreignServer(let uid): self = .unreachable(.foreignServer(uid: uid))
        case .weakAuthentication: self = .unreachable(.weakAuthentication)
        case .tooMuch: self = .unreachable(.tooMuch)
        case .timedOut: self = .unreachable(.timedOut)
        case .closed: self = .unreachable(.closed)
        case .readOnly: self = .refused(.readOnly)
        case .notNow: self = .unreachable(.notNow)
        case .malformed: self = .refused(.malformed)
        case .cancelled: self = .unreachable(.cancelled)
        case .busy: self = .unreachable(.busy)
        case .refused(let state, let number): self = RowError.refusal(state, number)
        }
    }

    private static func refusal(_ state: String, _ number: Int64?) -> RowError {
        switch state {
        case "RB001": .refused(.otherSchema(Int(number ?? 0)))
        // No schema, no function, no table.
        case "3F000", "42883", "42P01": .refused(.noSchema)
        // No right; no host (any more); a host that has not joined yet.
        case "42501", "RB002", "RB003": .refused(.notPermitted)
        case "53100": .refused(.noRoom)
        // The server ended a wait for a lock, or the statement: it has had no effect.
        case "55P03", "57014": .unreachable(.timedOut)
        default: .refused(.refused(state: state))
        }
    }
}
