public import DesktopBus

/// Why the helper process did not do what was asked. The sentences are our own: nothing that a command printed is in them.
public enum HelperError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The helper process could not be started; the system's reason.
    case notStarted(reason: String)
    /// The helper process ended, or broke its protocol, before it answered. The next request starts another.
    case ended
    /// The configured command gave no secret: `exited with status 1`, `did not finish within 60 s`, ...
    case commandFailed(reason: String)
    /// A program of the person's could not be started: `was not started: there is no program xdg-open`, ...
    case programFailed(reason: String)
    /// The Secret Service did not do what was asked.
    case secretService(SecretServiceError)
    /// The caller's own bound passed.
    case timedOut
    /// The caller was cancelled.
    case cancelled

    public var description: String {
        switch self {
        case .notStarted(let reason): "the helper process could not be started: \(reason)"
        case .ended: "the helper process ended before it answered"
        case .commandFailed(let reason): "client_secret_command \(reason)"
        case .programFailed(let reason): "the program \(reason)"
        case .secretService(let error): "\(error)"
        case .timedOut: "the helper process did not answer in time"
        case .cancelled: "cancelled"
        }
    }
}
