/// What became of a session that was to be refreshed with all others.
public struct SessionRefresh: Sendable {
    public let account: AccountName
    /// Nil if it was refreshed.
    public let error: BrokerError?
}

/// Every session of a user that a broker holds.
public struct EverySession: Sendable {
    /// How many sessions are refreshed at once.
    private static let mostAtOnce = 8

    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// Refreshes each of them once, so that nothing of it is good any more that somebody else may have. It is done also if
    /// the caller disconnects. Sorted by account.
    public func refresh() async -> [SessionRefresh] {
        let names = await broker.accounts().filter { account in
            account.kind.needsSignIn && (account.state == .authenticated || account.state == .refreshing)
        }.map(\.name)
        let refreshing = broker.work.start {
            await withTaskGroup(of: SessionRefresh.self) { group in
                var (outcomes, rest): ([SessionRefresh], ArraySlice<AccountName>) = ([], names[...])
                for name in rest.prefix(EverySession.mostAtOnce) { group.addTask { await refresh(name) } }
                rest = rest.dropFirst(EverySession.mostAtOnce)
                for await outcome in group {
                    outcomes.append(outcome)
                    if let name = rest.popFirst() { group.addTask { await refresh(name) } }
                }
                return outcomes
            }
        }
        return (await refreshing.wait() ?? []).sorted { $0.account.rawValue < $1.account.rawValue }
    }

    private func refresh(_ name: AccountName) async -> SessionRefresh {
        do throws(BrokerError) {
            _ = try await broker.refresh(name, isForced: true)
            return SessionRefresh(account: name, error: nil)
        } catch {
            return SessionRefresh(account: name, error: error)
        }
    }
}
