import RingbackClient
import StrictJSON

/// An identifier that is none, or nobody's: where the right ones are to be seen.
enum IdentifierHint {
    /// - Parameter verb: what shows them.
    static func explained(_ error: RingbackError, see verb: String) -> RingbackError {
        guard [.validationFailed, "invalid_request", .notFound].contains(error.kind) else { return error }
        return SignInAdvice.adding("See: \(verb)", to: error)
    }
}
