// What stands between the listener, which knows nothing of OAuth, and whoever does.

/// A request that came the right way to a place where a flow waits. It holds a code: it prints as nothing.
public struct CallbackArrival: Sendable, CustomStringConvertible, CustomReflectable {
    /// The callback URL: the redirect URI as it was opened, with the query that arrived.
    public let url: String
    /// The body of a `form_post`, undecoded; nil for a GET.
    public let form: [UInt8]?

    public init(url: String, form: [UInt8]?) {
        self.url = url
        self.form = form
    }

    public var description: String { "<callback>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A request for an address that a program was to open, by its key: see ``CallbackBinding/entrance(key:beside:peerUIDs:)``.
public enum EntranceVisit: Sendable, Equatable {
    /// A top-level navigation of a user who may.
    case opened(key: String)
    /// Another user's GET, or one whose connection was gone: nobody's. It changes nothing.
    case foreign(key: String, uid: UInt32?)
}

/// What became of an arrival, as far as the browser is concerned.
public enum CallbackOutcome: Sendable, Equatable {
    /// The sign-in is done.
    case completed
    /// The sign-in has ended without a session.
    case failed
    /// It was the first of two that a person is sent with, and says no more than that.
    case noted
    /// It came by the link of an older message; a newer one is awaited.
    case outdated
    /// It belonged to no pending flow and changed nothing.
    case unknown
}
