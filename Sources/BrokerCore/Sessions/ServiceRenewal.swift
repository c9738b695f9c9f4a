internal import Secrets

extension LaneState {
    /// True if the provider's last error response to a service does not end by itself. Then the provider is asked only
    /// when a caller wants a token.
    var awaitsMending: Bool {
        guard session?.isOfService == true, let error = renewal.backoff.error else { return false }
        return !error.isTransient
    }
}

/// Services in their lanes: a token is fetched when somebody asks for it, and again before it expires.
extension SessionManager {
    /// Waits until a running sign-out has ended: the tokens that it drops must not be issued, and there is a session
    /// after it.
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
    /// A service needs no sign-in: its configuration has signed it in. Methods that need a user (a code, a password)
    /// are refused. So are members that only a sign-in in a browser uses, since they would be ignored without notice.
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
