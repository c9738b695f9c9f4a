public import BrokerCore
internal import Synchronization

/// An app that listens for a scheme's links. The links are the desk's: what was given and not acknowledged is given to
/// the next one.
public final class LinkListener: Sendable {
    /// What there is to tell.
    public enum Next: Sendable, Equatable {
        case links([DeepLink])
        /// Nothing came within the bound.
        case quiet
        /// Another program listens now; this is the last word.
        case replaced
        /// The scheme is not configured any more; this is the last word.
        case removed
        /// The listener went away.
        case cancelled
    }

    /// Why nothing more comes.
    enum End: Sendable {
        case replaced, removed
    }

    private struct State {
        var lastGiven: UInt64 = 0
        var end: End?
        var signal = Promise<Void>()
    }
    public let scheme: String
    /// By the kernel's word.
    public let peer: PolicyPeer?
    private let registry: DeepLinkRegistry
    private let state = Mutex(State())

    init(scheme: String, peer: PolicyPeer?, registry: DeepLinkRegistry) {
        self.scheme = scheme
        self.peer = peer
        self.registry = registry
    }

    /// The next links, at most `bound` later.
    public func next(within bound: Duration) async -> Next {
        // The bell first: what comes after it has been taken rings it.
        let signal = state.withLock { $0.signal }
        if let ready = take() { return ready }
        _ = await signal.wait(atMost: bound)
        if Task.isCancelled { return .cancelled }
        return take() ?? .quiet
    }

    /// The listener goes away. What it has not acknowledged waits for the next one.
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

    /// Something is new.
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
