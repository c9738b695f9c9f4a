/// What the flows and the configuration say of where callbacks may arrive: enough to keep one from anybody else.
extension Broker {
    /// Every address that a callback may come to: those that the accounts' configuration states, and those of flows
    /// that are remembered, which keep the one that they began with, key included.
    public func redirectURIs() async -> (configured: Set<String>, ofFlows: Set<String>) {
        (await sessionManager.redirectURIs, await flowRegistry.redirectURIs)
    }

    /// True if one of these is the state or the key of a flow that is remembered, pending or not.
    public func remembersFlow(withAnyOf keys: some Sequence<String>) async -> Bool {
        await flowRegistry.hasFlow(withAnyOf: keys.map { Arrival.digest(of: $0) })
    }
}

extension SessionManager {
    var redirectURIs: Set<String> { Set(names.compactMap { try? account($0) }.compactMap(\.redirectURI)) }
}

extension FlowRegistry {
    var redirectURIs: Set<String> {
        Set(entries.values.flatMap { [$0.flow.redirectURI] + $0.requests.map(\.redirectURI) }).subtracting([""])
    }

    func hasFlow(withAnyOf keys: [[UInt8]]) -> Bool { keys.contains { identifiers[$0] != nil } }
}
