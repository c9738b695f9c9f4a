internal import PostgresClient
public import SharedVault

/// Why hosts could not be changed or listed.
public enum HostFailure: Error, Sendable, Equatable {
    case database(RowError)
    /// The role belongs to no host, or to one that was removed.
    case noHost
    /// The invitation has not been accepted yet.
    case notJoined
    /// The invitation was accepted by another host.
    case invitationUsed
    /// The owner has as many hosts as an owner may have.
    case tooManyHosts
    /// Another host of the owner has this name.
    case nameTaken

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
