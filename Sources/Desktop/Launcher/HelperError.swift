public import DesktopBus

/// Why the helper process did not do what was requested. The texts are our own and contain no output of a command.
public enum HelperError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The helper process could not be started; the system's reason.
    case notStarted(reason: String)
    /// The helper process ended or violated the protocol before it responded. The next request starts another one.
    case ended
    /// The configured command printed no secret: `exited with status 1`, `did not finish within 60 s`, ...
    case commandFailed(reason: String)
    /// A program could not be started: `was not started: there is no program xdg-open`, ...
    case programFailed(reason: String)
    /// The Secret Service did not do what was asked.
    case secretService(SecretServiceError)
    /// The `timeout` of the call has passed.
    case timedOut
    /// The caller was cancelled.
    case cancelled

    public var description: String {
        switch self {
        case .notStarted(let reason): "the helper process could not be started: \(reason)"
        case .ended: "the helper process ended before it responded"
        case .commandFailed(let reason): "client_secret_command \(reason)"
        case .programFailed(let reason): "the program \(reason)"
        case .secretService(let error): "\(error)"
        case .timedOut: "the helper process did not respond in time"
        case .cancelled: "cancelled"
        }
    }
}
