public import SessionVault

/// What became of a session that was to be refreshed with others.
public struct SessionRefresh: Sendable {
    public let account: AccountName
    /// Nil if it was refreshed.
    public let error: BrokerError?
}

/// Every session of a user that a broker holds.
public struct EverySession: Sendable {
    public typealias Condition = @Sendable (VaultSlot) async -> Bool

    /// How many sessions are refreshed at once.
    private static let mostAtOnce = 8

    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// The accounts whose sessions are in a slot that fulfils the condition, sorted.
    public func names(where isWanted: Condition) async -> [AccountName] {
        var names: [AccountName] = []
        for account in await broker.accounts() where EverySession.isHeld(account) {
            if await fulfils(account.name, isWanted) { names.append(account.name) }
        }
        return names.sorted { $0.rawValue < $1.rawValue }
    }

    /// Refreshes each session whose slot fulfils the condition once, so that nothing of it is good any more that somebody
    /// else may have. It is done also if the caller disconnects. Sorted by account.
    public func refresh(where isWanted: @escaping Condition) async -> [SessionRefresh] {
        let names = await names(where: isWanted)
        let refreshing = broker.work.start {
            await withTaskGroup(of: SessionRefresh.self) { group in
                var (outcomes, rest): ([SessionRefresh], ArraySlice<AccountName>) = ([], names[...])
                for name in rest.prefix(EverySession.mostAtOnce) { group.addTask { await refresh(name, isWanted) } }
                rest = rest.dropFirst(EverySession.mostAtOnce)
                for await outcome in group {
                    outcomes.append(outcome)
                    if let name = rest.popFirst() { group.addTask { await refresh(name, isWanted) } }
                }
                return outcomes
            }
        }
        return (await refreshing.wait() ?? []).sorted { $0.account.rawValue < $1.account.rawValue }
    }

    private func refresh(_ name: AccountName, _ isWanted: Condition) async -> SessionRefresh {
        // It may have been refreshed since, here or by another host.
        guard await fulfils(name, isWanted) else { return SessionRefresh(account: name, error: nil) }
        do throws(BrokerError) {
            _ = try await broker.refresh(name, isForced: true)
            return SessionRefresh(account: name, error: nil)
        } catch {
            return SessionRefresh(account: name, error: error)
        }
    }

    private static func isHeld(_ account: AccountView) -> Bool {
        account.kind.needsSignIn && (account.state == .authenticated || account.state == .refreshing)
    }

    private func fulfils(_ name: AccountName, _ isWanted: Condition) async -> Bool {
        guard let account = try? await broker.sessionManager.account(name) else { return false }
        return await isWanted(account.slot)
    }
}
