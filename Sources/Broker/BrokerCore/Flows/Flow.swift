internal import Cryptography
public import RingbackBase

/// One pending sign-in: who asked for what, what is awaited, and until when. Single use.
public struct Flow: Sendable {
    public let id: String
    public let account: Account
    public let request: SignInRequest
    public internal(set) var awaited: any AwaitedSignIn
    /// The awaited step at its start. A callback of a later request finds the daemon's own page by it.
    public let firstAwaited: any AwaitedSignIn
    public let startedAt: WallInstant
    let beganAt: BootInstant
    public let duration: Duration

    /// - Parameters:
    ///   - timeout: how long it may take if the request does not say; nil for the account's own limit.
    ///   - limit: how long the provider keeps it, if it says so.
    init(
        _ awaited: any AwaitedSignIn, account: Account, request: SignInRequest, timeout: Duration? = nil,
        atMost limit: Duration? = nil, by clock: BrokerClock
    ) {
        let bound = request.timeout ?? timeout ?? account.flowTimeout
        duration = limit.map { min(bound, $0) } ?? bound
        id = Flow.newID()
        self.account = account
        self.request = request.withoutSecrets
        self.awaited = awaited
        firstAwaited = awaited
        startedAt = clock.wallInstant
        beganAt = clock.bootInstant
    }

    /// Users name flows on the command line: what begins with a dash would be taken for an option there.
    static func newID() -> String {
        while true {
            let id = RandomToken.base64URL(bits: 128).revealed()
            if !id.hasPrefix("-") { return id }
        }
    }

    func isOver(by clock: BrokerClock) -> Bool { clock.bootInstant > deadline }

    public var redirectURI: String { awaited.redirectURI }
    public var authorizationURL: String { awaited.authorizationURL }

    /// The host of the page where the user signs in, otherwise of the issuer or the endpoints; nil if there is none.
    var providerHost: String? { account.providerHost(page: awaited.ownPage == nil ? authorizationURL : "") }

    /// The page to which a browser that opens one of the flow's entrances is redirected: the sign-in page, or the page
    /// where the code for another device is entered. Empty if there is no page.
    var page: String {
        guard let device = awaited.details.device else { return authorizationURL }
        return device.verificationURIComplete ?? device.verificationURI
    }

    public var expiresAt: WallInstant { startedAt + duration }
    var deadline: BootInstant { beganAt + duration }

    /// When the message may be sent again; nil where none was sent.
    var firstResendAt: BootInstant? { awaited.resendInterval.map { beganAt + $0 } }
    var expiry: BrokerError { .flowExpired(awaited.expiry(of: self)) }

    func ending(as status: FlowView.Status, after duration: Duration) -> BrokerFact {
        let (outcome, error): (BrokerFact.Outcome, BrokerError?) =
            switch status {
            case .pending, .completed: (.completed, nil)
            case .failed(let error): (.failed, error)
            case .cancelled: (.cancelled, nil)
            case .expired(let error): (.expired, error)
            }
        return .signInEnded(
            account.name, method: request.method, outcome, duration: duration, error: error,
            endsElsewhere: request.endsElsewhere)
    }
}

public struct FlowView: Sendable {
    public enum Status: Sendable, Equatable {
        case pending
        case completed
        case failed(BrokerError)
        case cancelled
        case expired(BrokerError)
    }

    public let id: String
    public let account: AccountName
    public let method: SignInMethod
    public let status: Status
    public let waitingFor: WaitingFor
    /// To be shown to the user. Empty where there is nothing to open.
    public let authorizationURL: String
    /// For a program to open, once: made for the caller who gets this view. Empty where none was made.
    public var openURL = ""
    /// Why no such address could be made. Then no program may be started with a page of the flow.
    public var openURLError: BrokerError?
    /// The addresses that were made for programs to open, and whether they were requested, oldest first.
    public var openAddresses: [OpenAddress] = []
    public let redirectURI: String
    public let startedAt: WallInstant
    public let expiresAt: WallInstant
    public let resendAfter: WallInstant?
    public var details = AwaitedDetails()
    /// A change of the user who is signed in. It uses a flow, but is no sign-in.
    public var changesUser = false
    /// While it is pending: why a callback with its key was refused; nil if none was.
    public var refusal: BrokerError?
    /// The host of the page where the user signs in, otherwise of the issuer or the endpoints; nil if there is none.
    public var providerHost: String?
    /// The account's display name, which is shown only beside ``providerHost``; nil without one.
    public var displayName: String?
}

public enum CallbackVerdict: Sendable, Equatable {
    case completed(flow: String)
    case failed(flow: String, BrokerError)
    /// The first of two links was opened: the provider has noted it, and nothing was changed here.
    case noted(flow: String)
    /// The callback came from the link of an older message. The flow keeps waiting for a newer one.
    case outdated(flow: String)
    /// Nothing was changed; the reason says why. `flow` is the pending flow whose key the callback has, if it has one:
    /// the flow keeps waiting and shows the reason.
    case ignored(Reason, flow: String? = nil)
    /// The state belonged to a flow that has ended.
    case ended
    case expired(flow: String)
}

/// Receives callbacks. A redirect URI is opened for each flow, and closed when the flow ends.
public struct CallbackReceiver: Sendable {
    /// Makes the redirect of a configured template (nil: the default) reachable and returns it as it is to be sent.
    public let open: @Sendable (_ template: String?, AccountName) async throws(BrokerError) -> String
    /// Makes an address with the key reachable that a program is to open, beside a redirect URI (empty: none). Nil if
    /// there is no listener for such addresses.
    public let openEntrance: OpenEntrance
    /// Serves a site of this name, and returns its address. Nil if there is no listener for sites.
    public let openSite: OpenSite
    /// Closes a redirect URI or an address to open, of the account that it was opened for.
    public let close: @Sendable (_ redirectURI: String, AccountName) async -> Void
    public let listeners: @Sendable () -> [String]

    public typealias OpenEntrance =
        @Sendable (_ key: String, _ redirectURI: String, AccountName) async throws(BrokerError) -> String?

    /// The site responds to the requests to its host. Their URL is only the path.
    public typealias OpenSite =
        @Sendable (
            _ name: String, AccountName, _ site: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
        ) async throws(BrokerError) -> String?

    public init(
        open: @escaping @Sendable (_ template: String?, AccountName) async throws(BrokerError) -> String,
        openEntrance: @escaping OpenEntrance = { _, _, _ in nil },
        openSite: @escaping OpenSite = { _, _, _ in nil },
        close: @escaping @Sendable (_ redirectURI: String, AccountName) async -> Void,
        listeners: @escaping @Sendable () -> [String]
    ) {
        self.open = open
        self.openEntrance = openEntrance
        self.openSite = openSite
        self.close = close
        self.listeners = listeners
    }
}

extension FlowRegistry {
    /// True if a callback at this address is a callback of the redirect URI: see ``WebURL/isPlace(of:)``.
    static func isPlace(_ address: String, of redirectURI: String) -> Bool {
        guard let asked = try? WebURL(parsing: redirectURI) else { return false }
        return (try? WebURL(parsing: address))?.isPlace(of: asked) ?? false
    }
}
