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
    /// Waits out a sign-out that is under way: what it drops is not to be handed out, and there is a session after it.
    func serviceSettled(_ name: AccountName, atMost bound: Duration) async throws(BrokerError) {
        guard let lane = lanes[name], lane.state.session?.isOfService == true, lane.state.signOutsInProgress > 0,
            let turn = tails[name]
        else {
            return
        }
        guard await turn.wait(atMost: bound) != nil else { throw Task.isCancelled ? .cancelled : .timedOut }
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
