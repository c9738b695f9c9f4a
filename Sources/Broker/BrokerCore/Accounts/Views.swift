public import RingbackBase

public enum AccountState: String, Sendable, CaseIterable {
    case loading
    case unauthenticated
    case authenticating
    case authenticated
    case refreshing
}

/// An account as callers see it.
public struct AccountView: Sendable {
    public let name: AccountName
    public let provider: String
    public let state: AccountState
    public let source: String
    /// True for the one account that commands use if they name none.
    public let isDefault: Bool
    /// How the sign-in page is opened.
    public let page: PageSettings
    /// Other accounts that hold a session of the same user at the same provider, ``mostOfSameUser`` at most.
    public let sameUser: [AccountName]
    static let mostOfSameUser = 10
    /// The token has expired and cannot be renewed for now.
    public let isStale: Bool
    public let subject: String?
    public let user: JSONObject?
    public let expiresAt: WallInstant?
    /// When the session ends unless it is refreshed before; nil if the provider does not say so.
    public let endsAt: WallInstant?
    /// False for a session without a refresh token.
    public let isRefreshable: Bool
    /// The host of the issuer, of the endpoints or of the MCP server, with an unusual port; nil if there is none.
    public let providerHost: String?
    /// The part of the session's attachment that callers may see.
    public let shown: SessionAttachment?
    public let kind: any AccountKind
    public let flow: FlowView?
    public let error: BrokerError?
    /// Scopes that the session lost when a downscoped token was requested, sorted; a sign-in brings them back.
    public let lostScopes: [String]
    /// A note for the user about a session that works, such as that it has no refresh token: one or two sentences.
    public let notice: Reason?
    /// `pending` or `refused`, for a signed-out session that the provider has not revoked.
    public let revocation: RevocationState?

    /// How the signed-in user is named in messages; nil without a session.
    public var who: String? { subject.flatMap { Session.name(of: user, $0) } }
}

/// Which token of a session a caller requests.
public struct SessionQuery: Sendable {
    public var key: TokenKey
    public var kind: TokenKind
    /// How long the token is to be valid at least; nil if the caller named no time.
    public var minValid: Duration?
    public var timeout: Duration = .seconds(30)
    public var subject: String?
    /// What the caller calls itself, for the user; it is not checked.
    public var program: String?
    /// Limits the requests to the provider that this caller may cause; nil at the daemon's own socket.
    public var allowance: Allowance?

    public init(key: TokenKey = .own, kind: TokenKind = .accessToken, minValid: Duration? = nil) {
        self.key = key
        self.kind = kind
        self.minValid = minValid
    }

    func token(in session: Session) -> AccessToken? {
        switch kind {
        case .accessToken: return session.tokens[key]
        case .idToken:
            guard let identity = session.identity else { return nil }
            return AccessToken(
                value: identity.token, type: "id_token", scope: nil, expiry: identity.expiry,
                lifetime: identity.lifetime)
        }
    }
}

extension AccountView {
    /// - Parameters:
    ///   - lockError: why no session can be read, if the vault is locked.
    ///   - missing: why the account through which this one gets its tokens has no session.
    init(
        _ lane: SessionManager.Lane, lockError: BrokerError?, missing: BrokerError?, flow: FlowView?,
        _ revocation: RevocationState?, sameUser: [AccountName], by clock: BrokerClock
    ) {
        let account = lane.account
        let shown = account.kind.needsSignIn ? lane.state.visible : lane.state.session
        let session = lockError == nil && missing == nil ? shown : nil
        let token = session?.tokens[.own]
        let hasExpired = token?.remaining(at: clock.bootInstant) == .zero
        let state: AccountState =
            if !lane.state.isLoaded || lockError != nil { .loading } else if session != nil {
                lane.state.renewal.running.isEmpty ? .authenticated : .refreshing
            } else { flow?.changesUser ?? true ? .unauthenticated : .authenticating }
        let ranOut = hasExpired && session?.isRefreshable == false
        self.init(
            name: account.name, provider: account.provider, state: state, source: account.source,
            isDefault: account.isDefault, page: account.page, sameUser: sameUser, isStale: hasExpired,
            subject: session?.subject, user: session?.user, expiresAt: token?.expiry?.wall(by: clock),
            endsAt: session?.end?.wall(by: clock), isRefreshable: session?.isRefreshable ?? true,
            providerHost: account.providerHost(), shown: session.flatMap { account.kind.shown(of: $0) },
            kind: account.kind, flow: flow,
            error: lane.state.error(of: account.name) ?? lockError ?? missing
                ?? (ranOut ? .sessionRanOut(account.name, advice: account.renewalAdvice) : nil),
            lostScopes: session?.lostScopes ?? [], notice: session.flatMap { AccountView.notice(of: $0, account) },
            revocation: revocation)
    }

    /// If scopes were lost, the notice is about them. Otherwise it says that a session without a refresh token ends
    /// with its access token, unless that token does not expire.
    private static func notice(of session: Session, _ account: Account) -> Reason? {
        guard session.lostScopes.isEmpty else { return .session(.lostScopes(account.name, session.lostScopes)) }
        guard !session.isRefreshable, session.tokens[.own]?.expiry != nil else { return nil }
        return .session(.endsWithToken(account.name, advice: account.renewalAdvice))
    }
}

extension SessionManager {
    func view(
        _ name: AccountName, flow: FlowView?, _ revocation: RevocationState? = nil
    ) throws(BrokerError) -> AccountView {
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        return view(lane, flow, revocation)
    }

    func views(
        with flows: [AccountName: FlowView], _ revocations: [AccountName: RevocationState] = [:]
    ) -> [AccountView] {
        names.compactMap { name in lanes[name].map { view($0, flows[name], revocations[name]) } }
    }

    private func view(_ lane: Lane, _ flow: FlowView?, _ revocation: RevocationState?) -> AccountView {
        let sameUser = lockError == nil ? lanes.ofSameUser(as: lane) : []
        let others = sameUser.lazy.filter { $0 != lane.account.name }.prefix(AccountView.mostOfSameUser)
        return AccountView(
            lane, lockError: lockError, missing: lane.account.absenceOfUpstream(by: self), flow: flow, revocation,
            sameUser: Array(others), by: clock)
    }

    /// The accounts whose problem is a setting that could not be used.
    var namesWithUnusableSetting: [AccountName] {
        names.filter { if case .unusableSetting? = lanes[$0]?.state.problem { true } else { false } }
    }

    var names: [AccountName] { lanes.keys.sorted() }

    public func account(_ name: AccountName) throws(BrokerError) -> Account {
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        return lane.account
    }

    func names(issuer: String) -> [AccountName] {
        lanes.values.filter { $0.account.issuer == issuer }.map(\.account.name).sorted()
    }
}
