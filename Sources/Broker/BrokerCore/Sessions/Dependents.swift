/// The accounts that get their tokens through the sign-in of one account.
struct Dependents: Sendable {
    let upstream: AccountName

    /// Ends what they got: that sign-in has ended, or another one is in its place. What they are asked for from now on
    /// waits for this.
    func end(by manager: isolated SessionManager) {
        for id in manager.lanes.dependents(of: upstream).compactMap({ manager.lanes[$0]?.id }) {
            manager.take(.configurationFixed, id)
            manager.take(.signOutBegan, id)
            manager.enqueue(id.account) { manager in
                defer { manager.take(.signOutEnded, id) }
                guard let lane = manager.lane(id),
                    let closed = (try? await manager.closeInTurn(lane, false)) ?? nil
                else { return }
                let tools = manager.tools
                manager.work.start { await closed.revokeOnce(with: tools) }
            }
        }
    }
}

extension Account {
    /// Why the account through which this one gets its tokens has no session; nil if it has one, or is not loaded yet.
    func absenceOfUpstream(by manager: isolated SessionManager) -> BrokerError? {
        guard let upstream = kind.upstream, manager.lanes[upstream]?.state.isLoaded == true,
            manager.held(upstream) == nil
        else { return nil }
        return manager.absence(of: upstream)
    }
}
