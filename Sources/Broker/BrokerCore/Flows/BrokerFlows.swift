/// Sign-ins that are under way, for those who watch them.
extension Broker {
    /// Every flow that is remembered.
    public func flows() async -> [FlowView] {
        await renewLapsed(await flowRegistry.views().map(\.id))
        return await flowRegistry.views()
    }

    /// A flow, once it has left `pending`, a callback of it is refused, or the bound has passed.
    public func flow(_ id: String, waiting bound: Duration = .zero) async throws(BrokerError) -> FlowView {
        // A caller that waits for the end has the URL already, so it is not renewed.
        if bound <= .zero { await renewLapsed([id]) }
        return try await flowRegistry.view(id, waiting: bound, endsAtRefusal: true)
    }

    /// Records that one caller, or every caller, no longer waits for the flow.
    public func cancel(_ id: String, isForAll: Bool) async throws(BrokerError) -> FlowView {
        try await flowRegistry.cancel(id, isForAll: isForAll)
    }
}
