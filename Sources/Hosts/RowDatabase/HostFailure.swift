internal import PostgresClient
internal import SharedVault

extension HostFailure {
    init(_ failure: PostgresFailure) {
        guard case .refused(let state, _) = failure else {
            self = .database(RowError(failure))
            return
        }
        switch state {
        case "RB002": self = .noHost
        case "RB003": self = .notJoined
        case "RB005": self = .invitationUsed
        case "RB006": self = .tooManyHosts
        case "23505": self = .nameTaken
        default: self = .database(RowError(failure))
        }
    }
}
