internal import Secrets

/// Services in their lanes: a token is fetched when somebody asks for it, and again before it expires.
extension SessionManager {
    /// Takes the session of a service up, in place of one from the vault. False for any other account.
    func takeUpService(_ lane: Lane, isNews: Bool) -> Bool {
        guard lane.account.grant != nil else { return false }
        let name = lane.account.name
        lanes[name]?.isLoaded = true
        hold(.ofService(lane.account, by: clock), name)
        if isNews { post(.signedIn, name, session: lanes[name]?.session) }
        lanes[name]?.load.fulfil(())
        post(.initialSession, name, session: lanes[name]?.session)
        return true
    }

    /// Fetches a token, in its turn.
    func fetch(
        _ name: AccountName, _ key: TokenKey, _ grant: ServiceGrant, for reason: RefreshReason
    ) async -> Result<Void, BrokerError> {
        guard let lane = lanes[name], lane.session != nil else { return .failure(.signInRequired(name)) }
        if let lockError { return .failure(lockError) }
        record(.refreshStarted(name, reason: reason))
        let fetched: Provider.ServiceToken
        do throws(BrokerError) {
            fetched = try await provider(lane.account).fetch(grant, key)
        } catch {
            return .failure(noteFailure(error, name, key, lane))
        }
        // The turn is this one's alone: nobody has changed the session meanwhile, but another may have its name.
        guard lanes[name]?.generation == lane.generation, var session = lanes[name]?.session else {
            return .failure(.signInRequired(name))
        }
        session.tokens[key] = fetched.token
        session.issuer = fetched.issuer
        session.tokenEndpointOrigin = fetched.origin
        if key == .own, let scope = fetched.token.scope { session.scope = scope }
        session.dropTokens(at: clock.bootInstant, butFor: key)
        lanes[name]?.backoff = Backoff()
        lanes[name]?.error = nil
        hold(session, name)
        record(.refreshSucceeded(name))
        post(.tokenRefreshed, name, session: session)
        return .success(())
    }

    private func noteFailure(
        _ error: BrokerError, _ name: AccountName, _ key: TokenKey, _ lane: Lane
    ) -> BrokerError {
        guard lanes[name]?.generation == lane.generation else { return .signInRequired(name) }
        guard error != .cancelled else { return error }
        record(.refreshFailed(name, error))
        // TX-04: what one app asks for beyond its limits is no matter of the others.
        if key != .own, error.concernsRequestAlone { return error }
        lanes[name]?.backoff.note(error, at: clock.bootInstant)
        lanes[name]?.error = error
        post(.refreshFailed, name, session: lanes[name]?.session, error: error)
        return error
    }

    /// True while nothing but a person can make the provider give this service a token: then nobody is asked unless a
    /// caller wants one.
    func awaitsMending(_ lane: Lane) -> Bool {
        guard lane.account.grant != nil, let error = lane.backoff.error else { return false }
        return !error.isTransient
    }

    /// A sign-out of a service drops what it fetched; the account stays what its configuration makes it. What is
    /// returned is to be told to the provider; nil if nothing was held.
    func dropTokens(of lane: Lane) -> Closed? {
        let name = lane.account.name
        lanes[name]?.backoff = Backoff()
        lanes[name]?.lastRefresh = nil
        guard let session = lane.session, !session.tokens.isEmpty else { return nil }
        lanes[name]?.session = .ofService(lane.account, by: clock)
        record(.sessionClosed(name, subject: nil))
        return Closed(account: lane.account, session: session, retirement: nil)
    }

    /// Waits out a sign-out that is under way: what it drops is not to be handed out, and there is a session after it.
    func serviceSettled(_ name: AccountName, atMost bound: Duration) async throws(BrokerError) {
        guard let lane = lanes[name], lane.account.grant != nil, lane.closings > 0, let turn = tails[name] else {
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
