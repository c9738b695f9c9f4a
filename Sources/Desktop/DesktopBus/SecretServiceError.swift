/// Why a request to the Secret Service failed. Reasons are our own texts, at most with the name of a D-Bus error, so
/// they contain no secret.
public enum SecretServiceError: Error, Sendable, Equatable, CustomStringConvertible {
    /// There is no bus, no service, or the service does not respond.
    case unavailable(reason: String)
    /// The key is locked. The service would prompt the user first.
    case locked
    /// There is no key with this identifier.
    case notFound
    /// The user dismissed the prompt.
    case dismissed
    case failed(reason: String)

    public var description: String {
        switch self {
        case .unavailable(let reason), .failed(let reason): reason
        case .locked: "the keyring is locked"
        case .notFound: "the keyring does not hold this key"
        case .dismissed: "the keyring's prompt was dismissed"
        }
    }

    init(_ failure: BusFailure) {
        self =
            switch failure {
            case .noLibrary: .unavailable(reason: "libsystemd, which talks to the session bus, is not installed")
            case .noBus: .unavailable(reason: "there is no session bus")
            case .lost: .unavailable(reason: "the connection to the session bus was lost")
            case .timedOut: .unavailable(reason: "the Secret Service does not respond")
            case .absent: .unavailable(reason: "no Secret Service is on the session bus")
            case .dismissed: .dismissed
            case .unanswered: .failed(reason: "the keyring's prompt was not completed in time")
            case .malformed: .failed(reason: "the Secret Service's reply violates its interface")
            case .refused(let name): SecretServiceError(name: name)
            }
    }

    private init(name: String) {
        switch name {
        case "org.freedesktop.Secret.Error.IsLocked": self = .locked
        case "org.freedesktop.Secret.Error.NoSuchObject", "org.freedesktop.DBus.Error.UnknownObject": self = .notFound
        case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
            "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected",
            "org.freedesktop.DBus.Error.NoServer", "org.freedesktop.DBus.Error.Timeout",
            "org.freedesktop.DBus.Error.TimedOut":
            self = .unavailable(reason: "the Secret Service ended or does not respond")
        case _ where name.hasPrefix("org.freedesktop.DBus.Error.Spawn."):
            self = .unavailable(reason: "the Secret Service could not be started (\(name))")
        default: self = .failed(reason: "the Secret Service returned the error \(name)")
        }
    }
}
