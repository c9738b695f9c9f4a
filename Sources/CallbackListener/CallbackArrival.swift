// The values that pass between the listener, which has no OAuth code, and the broker.

/// A request that passed all checks of the listener and matches the redirect URI of a pending flow. It contains a code,
/// so it prints as `<callback>`.
public struct CallbackArrival: Sendable, CustomStringConvertible, CustomReflectable {
    /// The callback URL: the redirect URI with the query that arrived.
    public let url: String
    /// The body of a `form_post` response, undecoded; nil for a GET.
    public let form: [UInt8]?
    /// The owners of the redirect URI, see ``CallbackBinding/owner``, whose rules admit the request. It may answer only
    /// their flows.
    public let owners: Set<String>

    public init(url: String, form: [UInt8]?, owners: Set<String>) {
        self.url = url
        self.form = form
        self.owners = owners
    }

    public var description: String { "<callback>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A request for a start address of ours, with its key, see
/// ``LoopbackListener/openEntrance(key:beside:owner:peerUIDs:)``.
public enum EntranceVisit: Sendable, Equatable {
    /// A top-level navigation of an allowed user.
    case opened(key: String)
    /// A GET of another user, or on a connection that is closed already, so its user is unknown. It changes nothing.
    case foreign(key: String, uid: UInt32?)
}

/// The result of a callback, as far as the browser's page shows it.
public enum CallbackOutcome: Sendable, Equatable {
    /// The sign-in is done.
    case completed
    /// The sign-in has ended without a session.
    case failed
    /// The first of two confirmations that are needed, for example when an e-mail address is changed.
    case noted
    /// It came from a link in an older message; the flow waits for the link in a newer one.
    case outdated
    /// It matched no pending flow and changed nothing.
    case unknown
}
