/// The accounts, as callers see them.
extension Broker {
    /// Every account, sorted by name.
    public func accounts() async -> [AccountView] {
        var views: [AccountView] = []
        for name in await sessionManager.names {
            if let view = try? await account(name) { views.append(view) }
        }
        return views
    }

    /// One account.
    public func account(_ name: AccountName) async throws(BrokerError) -> AccountView {
        try await sessionManager.view(name, flow: await flowRegistry.pending(name))
    }

    /// The one account of an issuer; where some are named, the one among them.
    public func account(issuer: String, among shown: [AccountName]? = nil) async throws(BrokerError) -> AccountName {
        let names = await sessionManager.names(issuer: issuer).filter { shown?.contains($0) ?? true }
        guard let name = names.first else { throw .accountNotFound(issuer) }
        guard names.count == 1 else {
            throw .conflict(
                "Several accounts have this issuer: \(names.map(\.rawValue).joined(separator: ", ")). Name one.")
        }
        return name
    }
}
