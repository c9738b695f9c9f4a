internal import Secrets

extension LaneState {
    /// True while nothing but a person can make the provider give this service a token: then nobody is asked unless a
    /// caller wants one.
    var awaitsMending: Bool {
        guard session?.isOfService == true, let error = renewal.backoff.error else { return false }
        return !error.isTransient
    }
}

/// Services in their lanes: a token is fetched when somebody asks for it, and again before it expires.
extension SessionManager {
    /// Fetches a token, in its turn.
    func fetch(
        _ lane: Lane, _ key: TokenKey, _ grant: ServiceGrant, for reason: RefreshReason
    ) async -> Result<Void, BrokerError> {
        let id = lane.id
        if let lockError { return .failure(lockError) }
        record(.refreshStarted(id.account, reason: reason))
        let fetched: Provider.ServiceToken
        do throws(BrokerError) {
            fetched = try await provider(lane.account).fetch(grant, key)
        } catch {
            guard self.lane(id) != nil else { return .failure(.signInRequired(id.account)) }
            // TX-04: what one app asks for beyond its limits is no matter of the others.
            let isOfRequest = key != .own && error.concernsRequestAlone
            if error != .cancelled { take(.failed(error, isOfRequest: isOfRequest), id) }
            return .failure(error)
        }
        // The turn is this one's alone: nobody has changed the session meanwhile, but another may have its name.
        guard var session = self.lane(id)?.state.session else { return .failure(.signInRequired(id.account)) }
        session.tokens[key] = fetched.token
        session.issuer = fetched.issuer
        session.tokenEndpointOrigin = fetched.origin
        if key == .own, let scope = fetched.token.scope { session.scope = scope }
        session.dropTokens(at: clock.bootInstant, butFor: key)
        take(.renewed(session, .memoryOnly, nil), id)
        return .success(())
    }

    /// A sign-out of a service drops what it fetched; the account stays what its configuration makes it. What is
    /// returned is to be told to the provider; nil if nothing was held.
    func dropTokens(of lane: Lane) -> Closed? {
        guard let session = lane.state.session, !session.tokens.isEmpty else { return nil }
        take(.closed(leaving: .ofService(lane.account, by: clock)), lane.id)
        return Closed(account: lane.account, session: session, retirement: nil)
    }

    /// Waits out a sign-out that is under way: what it drops is not to be handed out, and there is a session after it.
    func serviceSettled(_ name: AccountName, atMost bound: Duration) async throws(BrokerError) {
        guard let lane = lanes[name], lane.account.grant != nil, lane.state.signOutsInProgress > 0,
            let turn = tails[name]
        else {
            return
        }
        guard await turn.wait(atMost: bound) != nil else { throw Task.isCancelled ? .cancelled : .timedOut }
    }

    /// What only people have.
    static func refuseIdentity(_ query: SessionQuery, _ account: Account) throws(BrokerError) {
        guard let grant = account.grant, query.kind == .idToken else { return }
        throw .methodUnsupported("\(account.name) is a service (\(grant.word)), for which there are no ID tokens.")
    }
}

extension Broker {
    /// There is nothing to do: the configuration has signed the service in. Ways in that need a person (a code, a
    /// password) are refused, and so is what would be asked of a provider's page: it would be taken in silence.
    func refuseSignIn(
        of account: Account, _ grant: ServiceGrant, _ request: SignInRequest
    ) async throws(BrokerError) {
        guard request.method == "browser" else {
            throw .methodUnsupported(
                "\(account.name) is a service (\(grant.word)): it needs no sign-in, and has no method "
                    + "“\(request.method)”.")
        }
        let stated = [
            ("scopes", request.scopes != nil), ("params", !request.parameters.isEmpty),
            ("callback_port", request.callbackPort != nil),
        ]
        if let field = stated.first(where: \.1)?.0 {
            throw .invalid(
                field: field,
                reason: "\(account.name) is a service (\(grant.word)): it needs no sign-in, and its configuration says "
                    + "what it asks for")
        }
        try await sessionManager.admitsSession(account.name)
    }
}
