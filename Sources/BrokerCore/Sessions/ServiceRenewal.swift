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
