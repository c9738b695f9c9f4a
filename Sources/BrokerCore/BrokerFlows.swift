/// Sign-ins that are under way, for those who watch them.
extension Broker {
    /// Every flow that is remembered.
    public func flows() async -> [FlowView] {
        await renewLapsed(await desk.views().map(\.id))
        return await desk.views()
    }

    /// A flow, once it has left `pending` or the bound has passed.
    public func flow(_ id: String, waiting bound: Duration = .zero) async throws(BrokerError) -> FlowView {
        // Who waits for the end has an address already.
        if bound <= .zero { await renewLapsed([id]) }
        return try await desk.view(id, waiting: bound)
    }

    /// Takes one caller's interest in a flow away, or everybody's.
    public func withdraw(_ id: String, isForAll: Bool) async throws(BrokerError) -> FlowView {
        try await desk.withdraw(id, isForAll: isForAll)
    }
}
