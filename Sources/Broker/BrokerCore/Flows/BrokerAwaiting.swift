/// Where callbacks may arrive, as the configuration and the flows say. With this a link handler recognizes a callback
/// and does not pass it on to another program.
extension Broker {
    /// Every address at which a callback may arrive: those in the accounts' configuration, and those of the flows that
    /// are remembered. A flow keeps the address that it began with, including its key.
    public func redirectURIs() async -> (configured: Set<String>, ofFlows: Set<String>) {
        (await sessionManager.redirectURIs, await flowRegistry.redirectURIs)
    }

    /// True if one of these is the state or the key of a flow that is remembered, pending or not.
    public func remembersFlow(withAnyOf keys: some Sequence<String>) async -> Bool {
        await flowRegistry.hasFlow(withAnyOf: keys.map { Arrival.digest(of: $0) })
    }
}

extension FlowRegistry {
    var redirectURIs: Set<String> {
        Set(entries.values.flatMap { [$0.flow.redirectURI] + $0.requests.map(\.redirectURI) }).subtracting([""])
    }

    func hasFlow(withAnyOf keys: [[UInt8]]) -> Bool { keys.contains { identifiers[$0] != nil } }
}
