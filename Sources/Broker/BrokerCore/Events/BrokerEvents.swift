/// Subscriptions to events.
extension Broker {
    /// Subscribes to events. First come the accounts as they are now, then the remembered events after `lastSeen`, then
    /// what happens from now on. Waits until the accounts are loaded. As long as `process` listens, a caller counts as
    /// waiting for the flows that it asked for.
    public func events(
        of name: AccountName?, after lastSeen: UInt64?, process: Int32? = nil
    ) async throws(BrokerError) -> (initial: [BrokerEvent], live: EventSubscription) {
        let names = if let name { [try await sessionManager.account(name).name] } else { await sessionManager.names }
        let live = bus.subscribe(to: name, after: lastSeen, process: process)
        var initial: [BrokerEvent] = []
        for name in names {
            try? await sessionManager.ready(name)
            guard var view = try? await account(name) else { continue }
            if view.state == .loading {
                // The account's event follows when it is loaded, which may have happened just now.
                live.awaitInitial(name)
                guard let current = try? await account(name), current.state != .loading, live.stopAwaiting(name) else {
                    continue
                }
                view = current
            }
            initial.append(
                BrokerEvent(
                    kind: .initialSession, account: name, state: view.state, subject: view.subject, user: view.user,
                    expiresAt: view.expiresAt, error: view.error,
                    at: clock.wallInstant))
        }
        return (initial, live)
    }

    /// Ends a subscription whose listener has disconnected.
    public func stopListening(_ subscription: EventSubscription) { bus.remove(subscription) }
}
