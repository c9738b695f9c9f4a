public import BrokerCore
internal import Synchronization

/// An app that listens to a scheme's links. The registry keeps the links: those that were delivered but not
/// acknowledged are delivered to the next listener too.
public final class LinkListener: Sendable {
    /// The result of waiting for links.
    public enum Next: Sendable, Equatable {
        case links([DeepLink])
        /// No link arrived in time.
        case quiet
        /// Another program has replaced this listener, which gets no more links.
        case replaced
        /// The scheme is no longer configured; the listener gets no more links.
        case removed
        /// The task was cancelled.
        case cancelled
    }

    /// Why the listener was ended.
    enum End: Sendable {
        case replaced, removed
    }

    private struct State {
        var lastGiven: UInt64 = 0
        var end: End?
        var signal = Promise<Void>()
    }
    public let scheme: String
    /// The process at the other end, by the kernel's credentials.
    public let peer: PolicyPeer?
    private let registry: DeepLinkRegistry
    private let state = Mutex(State())

    init(scheme: String, peer: PolicyPeer?, registry: DeepLinkRegistry) {
        self.scheme = scheme
        self.peer = peer
        self.registry = registry
    }

    /// Waits for the next links, at most `bound`.
    public func next(within bound: Duration) async -> Next {
        // The signal is read before the links are taken. A link that arrives in between fulfils it, so it is not
        // missed.
        let signal = state.withLock { $0.signal }
        if let ready = take() { return ready }
        _ = await signal.wait(atMost: bound)
        if Task.isCancelled { return .cancelled }
        return take() ?? .quiet
    }

    /// Stops listening. Links that it has not acknowledged stay for the next listener.
    public func stop() { registry.leave(self) }

    private func take() -> Next? {
        switch state.withLock({ $0.end }) {
        case .replaced: return .replaced
        case .removed: return .removed
        case nil: break
        }
        let last = state.withLock { $0.lastGiven }
        let links = registry.links(for: self, after: last)
        guard let newest = links.last else { return nil }
        state.withLock { $0.lastGiven = newest.id }
        return .links(links)
    }

    /// Wakes a waiting ``next(within:)``.
    func wake() {
        state.withLock { state in
            defer { state.signal = Promise() }
            return state.signal
        }.fulfil(())
    }

    func end(_ end: End) {
        state.withLock { $0.end = end }
        wake()
    }
}
