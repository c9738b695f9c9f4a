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
        guard await turn.wait(atMost: bound) != nil else { throw .endOfWait }
    }
}
