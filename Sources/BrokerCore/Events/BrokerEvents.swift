/// What listeners are told.
extension Broker {
    /// What happens from now on; first the accounts as they are, then what `lastSeen` missed. Waits until the accounts
    /// are loaded. The flows that `process` asked for are waited for as long as it listens.
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
                // Told of when it is loaded, which may have happened just now.
                live.awaitInitial(name)
                guard let current = try? await account(name), current.state != .loading, live.stopAwaiting(name) else {
                    continue
                }
                view = current
            }
            initial.append(
                BrokerEvent(
                    kind: .initialSession, account: name, state: view.state, subject: view.subject, user: view.user,
                    expiresAt: view.expiresAt, error: view.error, at: clock.now()))
        }
        return (initial, live)
    }

    /// The listener went away.
    public func stopListening(_ subscription: EventSubscription) { bus.remove(subscription) }
}
