/// What became of a session that was to be refreshed with all others.
public struct SessionRefresh: Sendable {
    public let account: AccountName
    /// Nil if it was refreshed.
    public let error: BrokerError?
}

extension Broker {
    /// How many sessions are refreshed at once.
    private static let mostAtOnce = 8

    /// Refreshes every session of a user once, so that nothing of it is good any more that somebody else may have. It is
    /// done also if the caller disconnects. Sorted by account.
    public func refreshEverySession() async -> [SessionRefresh] {
        let names = await accounts().filter { account in
            account.kind.needsSignIn && (account.state == .authenticated || account.state == .refreshing)
        }.map(\.name)
        let refreshing = work.start {
            await withTaskGroup(of: SessionRefresh.self) { group in
                var (outcomes, rest): ([SessionRefresh], ArraySlice<AccountName>) = ([], names[...])
                for name in rest.prefix(Broker.mostAtOnce) { group.addTask { await refreshed(name) } }
                rest = rest.dropFirst(Broker.mostAtOnce)
                for await outcome in group {
                    outcomes.append(outcome)
                    if let name = rest.popFirst() { group.addTask { await refreshed(name) } }
                }
                return outcomes
            }
        }
        return (await refreshing.wait() ?? []).sorted { $0.account.rawValue < $1.account.rawValue }
    }

    private func refreshed(_ name: AccountName) async -> SessionRefresh {
        do throws(BrokerError) {
            _ = try await refresh(name, isForced: true)
            return SessionRefresh(account: name, error: nil)
        } catch {
            return SessionRefresh(account: name, error: error)
        }
    }
}
