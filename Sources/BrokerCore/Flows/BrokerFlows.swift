/// Sign-ins that are under way, for those who watch them.
extension Broker {
    /// Every flow that is remembered.
    public func flows() async -> [FlowView] {
        await renewLapsed(await flowRegistry.views().map(\.id))
        return await flowRegistry.views()
    }

    /// A flow, once it has left `pending` or the bound has passed.
    public func flow(_ id: String, waiting bound: Duration = .zero) async throws(BrokerError) -> FlowView {
        // Who waits for the end has an address already.
        if bound <= .zero { await renewLapsed([id]) }
        return try await flowRegistry.view(id, waiting: bound)
    }

    /// Takes one caller's interest in a flow away, or everybody's.
    public func cancel(_ id: String, isForAll: Bool) async throws(BrokerError) -> FlowView {
        try await flowRegistry.cancel(id, isForAll: isForAll)
    }
}
