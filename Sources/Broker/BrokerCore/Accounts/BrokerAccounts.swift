/// The accounts, as callers see them.
extension Broker {
    /// Every account, sorted by name.
    public func accounts() async -> [AccountView] {
        for name in await sessionManager.namesWithUnusableSetting { await lookAgain(name) }
        return await sessionManager.views(with: await flowRegistry.pending(), await revocations.undelivered())
    }

    /// One account. A problem with a file of its settings is not shown any more once the file can be used.
    public func account(_ name: AccountName) async throws(BrokerError) -> AccountView {
        await lookAgain(name)
        let revocation = await revocations.undelivered()[name]
        return try await sessionManager.view(name, flow: await flowRegistry.pending(name), revocation)
    }

    /// Checks a setting again that could not be used. If it can be used now, the account's problem is cleared.
    private func lookAgain(_ name: AccountName) async {
        guard let lane = await sessionManager.lanes[name], case .unusableSetting(let setting)? = lane.state.problem,
            await lane.account.kind.isUsable(setting)
        else { return }
        await sessionManager.take(.settingFixed(setting), lane.id)
    }

    /// The only account of an issuer. With `shown`, only these accounts are considered. Throws if there is none or more
    /// than one.
    public func account(issuer: String, among shown: [AccountName]? = nil) async throws(BrokerError) -> AccountName {
        let names = await sessionManager.names(issuer: issuer).filter { shown?.contains($0) ?? true }
        guard let name = names.first else { throw .accountNotFound(issuer) }
        guard names.count == 1 else {
            throw .conflict(.account(.issuerShared(names)))
        }
        return name
    }
}
