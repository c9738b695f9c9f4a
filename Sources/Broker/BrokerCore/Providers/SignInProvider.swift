public import RingbackBase

/// What the broker asks of an account's provider: with ``AccountKind`` all that it knows of the kinds of accounts.
///
/// A conformer is a value that is made for each use and holds nothing: what it remembers is in a ``ProviderMemory``.
public protocol SignInProvider: Sendable {
    // MARK: Sign-ins

    /// The request with defaults filled in, so that a request that leaves a field out equals one that names the
    /// default. Throws for a caller's mistake, before anything is asked of the provider.
    func check(_ request: SignInRequest) throws(BrokerError) -> SignInRequest

    /// Begins a sign-in: it becomes a flow, or is done at once.
    func begin(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning

    /// Exchanges a proof for a session, or for the next state of the flow. The flow's claim is held meanwhile, so that
    /// nothing else redeems a proof of it, and its deadline does not end it.
    func redeem(
        _ proof: Proof, of flow: Flow, in context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption

    /// Runs beside a flow whose ``AwaitedSignIn/isAccompanied`` is true, until it ends or the daemon does.
    func accompany(_ flow: Flow, in context: SignInContext) async

    /// Pushes the flow's authorization request to the provider again, with the same secrets (RFC 9126).
    func renewPage(of flow: Flow) async throws(BrokerError) -> any AwaitedSignIn

    /// Another request for the flow, with secrets of its own; nil if the two callbacks could not be told apart.
    func anotherPage(of flow: Flow, in context: SignInContext) async throws(BrokerError) -> (any AwaitedSignIn)?

    func resend(
        _ flow: Flow, captcha: Secret?, in context: SignInContext
    ) async throws(BrokerError) -> AwaitedChange?

    func noteExpiry(of flow: Flow) async

    // MARK: Sessions

    /// Prepares a refresh: does everything that can fail before a refresh token is presented.
    func renewal(
        of session: Session, for key: TokenKey, because reason: RefreshReason
    ) async throws(BrokerError) -> Renewal

    /// Tells the provider that a session is over. False if it has no revocation endpoint (RFC 7009).
    ///
    /// - Parameter endingAll: the user's other sessions are to end, too, where the provider offers that.
    func revoke(_ session: Session, endingAll: Bool) async throws(BrokerError) -> Bool

    /// The provider's identifier of a session, the same for all its tokens; nil if its tokens do not contain one. Where
    /// two identifiers differ, the provider keeps two sessions, and each has to be ended by itself.
    func family(of session: Session) -> String?

    /// The page that ends the user's session at the provider; nil if the provider has none.
    func endSessionPage(of session: Session?, _ form: EndSessionForm) async throws(BrokerError) -> EndSessionPage?

    // MARK: Diagnosis

    /// Checks the provider with requests like those of a sign-in. It starts no sign-in and changes nothing.
    func diagnose(_ subject: DiagnosisSubject, of session: Session?) async -> Diagnosis
}

extension SignInProvider {
    public func accompany(_ flow: Flow, in context: SignInContext) async {}
    public func noteExpiry(of flow: Flow) async {}
    public func renewPage(of flow: Flow) async throws(BrokerError) -> any AwaitedSignIn { flow.awaited }
    public func anotherPage(
        of flow: Flow, in context: SignInContext
    ) async throws(BrokerError) -> (any AwaitedSignIn)? { nil }

    public func resend(
        _ flow: Flow, captcha: Secret?, in context: SignInContext
    ) async throws(BrokerError) -> AwaitedChange? {
        throw .conflict(.noProofAwaited(.code))
    }

    public func family(of session: Session) -> String? { nil }
    public func endSessionPage(
        of session: Session?, _ form: EndSessionForm
    ) async throws(BrokerError) -> EndSessionPage? { nil }
}

public enum Beginning: Sendable {
    /// - Parameters:
    ///   - timeout: how long it may take where the request does not say; nil for the account's own bound.
    ///   - atMost: how long the provider keeps it, if it says so.
    case flow(any AwaitedSignIn, timeout: Duration? = nil, atMost: Duration? = nil)
    case done
}

public enum Proof: Sendable {
    /// A callback that the flow has recognized.
    case callback(Arrival)
    case code(TypedCode)
    case credential(JSONObject)
    /// The provider's token endpoint is to be polled now (RFC 8628).
    case poll
    /// The other account's sign-in that was waited for is done.
    case upstream
    /// What the user entered on a page that the daemon serves for the provider. Only the provider's code reads it.
    case own(any Sendable)

    public enum Kind: Sendable {
        case callback, code, credential, poll, upstream
    }
}

/// A code of a message, or the hash of a mail's link.
public struct TypedCode: Sendable {
    public var code: Secret?
    public var linkHash: Secret?
    public var origin: CodeOrigin

    public init(code: Secret? = nil, linkHash: Secret? = nil, origin: CodeOrigin = CodeOrigin()) {
        self.code = code
        self.linkHash = linkHash
        self.origin = origin
    }
}

public enum Redemption: Sendable {
    case session(Session, SessionOpening)
    /// A session of the user who is signed in. `apply` replaces the current session with it. The flow then ends, or
    /// waits for what `next` leaves.
    case change(Session, next: AwaitedChange?, apply: @Sendable () async throws(BrokerError) -> Void)
    /// There is no session yet. The flow keeps waiting, for example for another confirmation.
    case waiting(AwaitedChange?)
    /// The proof belongs to another sign-in, for the given reason. The flow keeps waiting for the genuine one.
    case notGenuine(Reason)
}

/// The next state of what a flow awaits; nil if nothing is left to wait for. Runs in a turn of the registry.
public typealias AwaitedChange = @Sendable (any AwaitedSignIn) -> (any AwaitedSignIn)?

public struct RedemptionFailure: Error, Sendable {
    public let error: BrokerError
    /// False if the flow keeps waiting: the proof was wrong, or may be sent again.
    public let endsFlow: Bool

    public init(_ error: BrokerError, endsFlow: Bool = true) {
        self.error = error
        self.endsFlow = endsFlow
    }

    /// Runs something whose errors end the flow, or leave it waiting.
    public static func mapping<Value>(
        endsFlow: Bool = true, _ body: () async throws(BrokerError) -> Value
    ) async throws(RedemptionFailure) -> Value {
        do throws(BrokerError) {
            return try await body()
        } catch {
            throw RedemptionFailure(error, endsFlow: endsFlow)
        }
    }
}

public struct SessionOpening: Sendable {
    /// Another user than the one who is signed in may take the account over.
    public var switchesSubject: Bool
    public var event: BrokerEvent.Kind
    /// Another operation than a sign-in asked for it.
    public var isAsked: Bool
    /// Why the session has no token yet, if it has none.
    public var notice: BrokerError?

    public init(
        switchesSubject: Bool = false, event: BrokerEvent.Kind = .signedIn, isAsked: Bool = false,
        notice: BrokerError? = nil
    ) {
        self.switchesSubject = switchesSubject
        self.event = event
        self.isAsked = isAsked
        self.notice = notice
    }
}
