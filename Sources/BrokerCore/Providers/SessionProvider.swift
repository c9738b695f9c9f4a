internal import HTTPMessages
internal import OAuth
internal import Secrets

/// What the session manager asks of an account's provider. It knows the kinds of accounts by this alone.
protocol SessionProvider: Sendable {
    /// Makes a refresh ready: all that can fail before a refresh token is presented (metadata, the client's secret).
    func renewal(of session: Session, for key: TokenKey) async throws(BrokerError) -> Renewal

    /// Tells the provider that a session is over. False if it has no place to hear it (RFC 7009).
    func revoke(_ session: Session) async throws(BrokerError) -> Bool
}

/// A refresh that is ready to be sent. Its phases stay in the session manager: announce, send, keep, validate, serve.
struct Renewal: Sendable {
    /// The refresh tokens worth presenting, newest first; empty where none is needed.
    let presents: [Secret]
    /// Sends the request with one of them. Throws only what says that there is no response to look into.
    let send: @Sendable (Secret?) async throws(BrokerError) -> RenewalResponse
    /// What an error of ``send`` or of the validation says about the session.
    let meaning: @Sendable (BrokerError) -> RenewalMeaning
}

/// The response to a refresh, after the first look: its refresh token is known, the rest is not validated yet.
struct RenewalResponse: Sendable {
    /// The new refresh token; nil if the old one stays.
    let refreshToken: Secret?
    /// The session with the response's tokens, or why none of them may be used.
    let validate: @Sendable (Session) async throws(BrokerError) -> Session
}

/// What a failed refresh says about the session.
enum RenewalMeaning: Sendable, Equatable {
    /// The refresh token that was presented is dead. The code is the provider's own, where it has more than one.
    case dead(code: String?)
    /// The response is another session's, and so is the refresh token that was presented, unless it is the one that the
    /// last validated response brought.
    case otherSession
    /// The provider said that it did nothing.
    case unchanged
    /// The provider may have rotated the refresh token though its response was lost, and takes the older one only for a
    /// short while.
    case maybeRotated
    /// What failed was this request for a downscoped token; it says nothing about the session.
    case requestOnly(isUnchanged: Bool)
    /// Nothing is known. The refresh may be tried again.
    case unknown
}

extension Account {
    /// The account's provider, as the session manager talks to it.
    func sessionProvider(
        http: any HTTPClient, directory: ProviderDirectory, clock: BrokerClock
    ) -> any SessionProvider {
        let provider = Provider(account: self, http: http, directory: directory, clock: clock)
        if let grant { return ServiceProvider(provider: provider, grant: grant) }
        return provider.asProject ?? provider
    }

    /// The session that the configuration alone makes, where no person signs in.
    func configuredSession(by clock: BrokerClock) -> Session? { grant == nil ? nil : .ofService(self, by: clock) }

    /// Refuses a token that this kind of account cannot have.
    func check(_ query: SessionQuery) throws(BrokerError) {
        if let grant, query.kind == .idToken {
            throw .methodUnsupported("\(name) is a service (\(grant.word)), for which there are no ID tokens.")
        }
        guard project != nil else { return }
        // A project has one token for everything: another one than was asked for would be a lie.
        guard query.key == .own else {
            throw .methodUnsupported("\(name) is at a Supabase project, whose tokens cannot be narrowed.")
        }
        guard query.kind == .accessToken else {
            throw .methodUnsupported("\(name) is at a Supabase project, which gives no ID tokens.")
        }
    }
}

extension Provider: SessionProvider {
    func renewal(of session: Session, for key: TokenKey) async throws(BrokerError) -> Renewal {
        let metadata = try await metadata()
        try session.refuseMove(of: account, to: metadata.tokenEndpoint)
        let registration = try await registration(metadata)
        return Renewal(
            // A downscoped request may be refused for its own sake: the older token is not risked for it.
            presents: key == .own ? session.refreshTokens : Array(session.refreshTokens.prefix(1)),
            send: { token throws(BrokerError) in
                guard let token else { throw .signInRequired(account.name) }
                let restoration = key == .own ? session.restoration(of: token) : nil
                let (response, isRefused) = try await ScopeRestoration.attempt(restoration, key) {
                    key throws(BrokerError) in
                    try await refresh(token, key: key, metadata: metadata, registration: registration)
                }
                return RenewalResponse(refreshToken: response.refreshToken) { held throws(BrokerError) in
                    var renewed = try await validate(response, for: held, key: key, metadata: metadata)
                    renewed.noteScopes(of: key, after: held, restoration, isRefused: isRefused)
                    return renewed
                }
            }, meaning: { $0.meaning(forRefreshOf: key) })
    }
}

extension Session {
    /// The token endpoint may have moved by the provider's own word: the refresh token does not follow it.
    func refuseMove(of account: Account, to endpoint: String) throws(BrokerError) {
        guard try FlowRegistry.origin(of: endpoint) == tokenEndpointOrigin else {
            throw .conflict(
                "The token endpoint of \(account.name) is no longer at \(tokenEndpointOrigin). "
                    + "Its session was not sent to the new one. Sign in again.")
        }
    }
}

extension BrokerError {
    /// What it says about the session when it came of a refresh.
    fileprivate func meaning(forRefreshOf key: TokenKey) -> RenewalMeaning {
        if provesDeadGrant { return .dead(code: nil) }
        switch self {
        case .provider(.otherSession): return .otherSession
        // Without a word, this may be of the scope alone.
        case .provider(.unexplained) where key != .own: return .requestOnly(isUnchanged: false)
        default: break
        }
        guard key == .own || isTransient else { return .requestOnly(isUnchanged: provesUnchanged) }
        return provesUnchanged ? .unchanged : .unknown
    }

    /// `invalid_grant` is the only proof (RFC 6749 section 5.2); everything else may pass.
    var provesDeadGrant: Bool {
        if case .provider(.refused("invalid_grant", _)) = self { true } else { false }
    }

    /// The provider said no in its own words, before it did anything.
    var provesUnchanged: Bool {
        switch self {
        case .provider(.refused), .provider(.rateLimited): true
        default: false
        }
    }
}
