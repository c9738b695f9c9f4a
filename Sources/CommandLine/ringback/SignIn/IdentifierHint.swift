import RingbackClient
import StrictJSON
import Terminal

/// Adds to the error for an unknown identifier which command lists the right ones.
enum IdentifierHint {
    /// - Parameter verb: the command that lists them.
    static func explained(_ error: RingbackError, see verb: ShownCommand) -> RingbackError {
        guard [.validationFailed, "invalid_request", .notFound].contains(error.kind) else { return error }
        return SignInAdvice.adding("See: \(shown: verb)", to: error)
    }
}
