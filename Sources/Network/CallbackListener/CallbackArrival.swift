// The values that pass between the listener, which has no OAuth code, and the broker.

/// A request that passed all checks of the listener and matches the redirect URI of a pending flow, or one that failed
/// the check of its ``obstacle``. It contains a code, so it prints as `<callback>`.
public struct CallbackArrival: Sendable, CustomStringConvertible, CustomReflectable {
    /// The callback URL: the redirect URI with the query that arrived.
    public let url: String
    /// The body of a `form_post` response, undecoded; nil for a GET.
    public let form: [UInt8]?
    /// The owners of the redirect URI, see ``CallbackBinding/owner``, whose rules admit the request. It may answer only
    /// their flows.
    public let owners: Set<String>
    /// Why it is no callback that may complete a flow; nil if it may.
    public let obstacle: Obstacle?

    /// A check that a request failed, though it may have come from the browser of a pending sign-in.
    public enum Obstacle: Sendable {
        /// No pending flow has this path.
        case otherPath
        /// A POST where none is awaited.
        case posted
        /// Not a top-level navigation of a document.
        case notNavigated
    }

    public init(url: String, form: [UInt8]?, owners: Set<String>, obstacle: Obstacle? = nil) {
        self.url = url
        self.form = form
        self.owners = owners
        self.obstacle = obstacle
    }

    public var description: String { "<callback>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A request for a start address of ours, with its key, see
/// ``LoopbackListener/openEntrance(key:beside:owner:peerUIDs:)``.
public enum EntranceVisit: Sendable, Equatable {
    /// A top-level navigation of an allowed user.
    case opened(key: String)
    /// A GET from another user, or on a closed connection, whose user is unknown. It changes nothing.
    case foreign(key: String, uid: UInt32?)
}

/// The result of a request for a start address.
public enum EntranceOutcome: Sendable, Equatable {
    /// The browser is redirected to this URL.
    case redirected(to: String)
    /// The sign-in has succeeded already: the browser is shown the page that says so.
    case completed(SignInLabel)
    /// The address is no longer valid.
    case spent
}

/// The account and the provider that a page names. The page escapes both names.
public struct SignInLabel: Sendable, Hashable {
    /// The account's name, as configured.
    public let account: String
    /// The host of the provider; nil if it is not known.
    public let providerHost: String?

    public init(account: String, providerHost: String?) {
        self.account = account
        self.providerHost = providerHost
    }
}

/// The result of a callback, as far as the browser's page shows it.
public struct CallbackOutcome: Sendable, Equatable {
    public enum Result: Sendable {
        /// The sign-in is done.
        case completed
        /// The sign-in has ended without a session.
        case failed
        /// The same, since the user or the provider declined.
        case denied
        /// The flow had expired before the callback came.
        case expired
        /// The first of two confirmations that are needed, for example when an e-mail address is changed.
        case noted
        /// The callback came from a link in an older message; the flow waits for the link in a newer one.
        case outdated
        /// The callback belongs to a pending flow and was refused. The flow keeps waiting.
        case refused
        /// The same, because of the issuer that it names or does not name.
        case wrongIssuer
        /// The callback matched no pending flow and changed nothing.
        case unknown
    }

    public let result: Result
    /// Nil if it is not known.
    public let signIn: SignInLabel?
    /// The URL of the daemon's own page where the sign-in goes on; nil if it does not go on.
    public let next: String?

    public init(_ result: Result, of signIn: SignInLabel? = nil, next: String? = nil) {
        self.result = result
        self.signIn = signIn
        self.next = next
    }

    /// What the page says; nil if it belongs to no flow.
    var content: PageContent? {
        switch result {
        case .completed: PageContent(.done, of: signIn)
        case .failed: PageContent(.failed, of: signIn)
        case .denied: PageContent(.denied, of: signIn)
        case .expired: PageContent(.expired, of: signIn)
        case .noted: PageContent(.noted, of: signIn)
        case .outdated: PageContent(.outdated, of: signIn)
        case .refused: PageContent(.refused, of: signIn)
        case .wrongIssuer: PageContent(.wrongIssuer, of: signIn)
        case .unknown: nil
        }
    }
}
