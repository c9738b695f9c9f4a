public import BrokerCore
public import RingbackBase
internal import Synchronization

/// An app that listens to a scheme's links. The registry keeps those that are not acknowledged for the next listener.
public final class LinkListener: Sendable {
    public enum Next: Sendable, Equatable {
        case links([DeepLink])
        /// No link arrived in time.
        case quiet
        /// Another program has replaced this listener, which gets no more links.
        case replaced
        case removed
        case cancelled
    }

    private struct State {
        var lastGiven: UInt64 = 0
        var end: Next?
        var signal = Promise<Void>()
    }
    public let scheme: String
    public let peer: PolicyPeer?
    private let registry: DeepLinkRegistry
    private let state = Mutex(State())

    init(scheme: String, peer: PolicyPeer?, registry: DeepLinkRegistry) {
        self.scheme = scheme
        self.peer = peer
        self.registry = registry
    }

    public func next(within bound: Duration) async -> Next {
        // The signal is read first: a link that arrives before the links are taken fulfils it.
        let signal = state.withLock { $0.signal }
        if let ready = take() { return ready }
        _ = await signal.wait(atMost: bound)
        if Task.isCancelled { return .cancelled }
        return take() ?? .quiet
    }

    /// Stops listening. Links that it has not acknowledged stay for the next listener.
    public func stop() { registry.leave(self) }

    private func take() -> Next? {
        if let end = state.withLock({ $0.end }) { return end }
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

    func end(_ end: Next) {
        state.withLock { $0.end = end }
        wake()
    }
}

/// A link for an app. Its URL is a secret, so it is never printed.
public struct DeepLink: Sendable, Equatable {
    /// Increases with each link, also across restarts.
    public let id: UInt64
    public let scheme: String
    public let url: Secret
    public let at: WallInstant
}

public struct LinkScheme: Sendable, Equatable {
    public let name: String
    /// True if a program is configured that is started when no app listens.
    public let hasCommand: Bool
    /// True if the program gets the link as an argument. It is then started once for each link.
    public let takesURL: Bool

    public init(name: String, hasCommand: Bool, takesURL: Bool) {
        self.name = name
        self.hasCommand = hasCommand
        self.takesURL = takesURL
    }
}

/// The unacknowledged links of one scheme. A listener gets all of them in order. This is pure state without waiting.
struct SchemeLinks {
    private struct Waiting {
        let link: DeepLink
        let arrivedAt: BootInstant
        /// True if a program was started for it or a listener has had time to read it.
        var needsNoStart = false
    }
    private var waiting: [Waiting] = []
    private(set) var listener: LinkListener?
    private var startedAt: BootInstant?

    /// The maximum number of links. Beyond it the oldest is dropped.
    static let capacity = 16
    /// How long a link is kept. The user does not expect a late reaction to a click.
    static let lifetime: Duration = .seconds(60)
    /// Between two starts of the program: a web page that opens links repeatedly cannot start it more often.
    static let startInterval: Duration = .seconds(10)
    /// If its listener leaves within this time after a link arrived, the listener may not have read it.
    static let readingTime: Duration = .seconds(5)

    func isIdle(at now: BootInstant) -> Bool {
        listener == nil && waiting.isEmpty && startedAt.map { now - $0 >= SchemeLinks.startInterval } ?? true
    }

    func links(after id: UInt64) -> [DeepLink] { waiting.map(\.link).filter { $0.id > id } }

    mutating func forgetOld(at now: BootInstant) {
        waiting.removeAll { now - $0.arrivedAt >= SchemeLinks.lifetime }
    }

    mutating func append(_ link: DeepLink, at now: BootInstant) {
        forgetOld(at: now)
        waiting.append(Waiting(link: link, arrivedAt: now))
        if waiting.count > SchemeLinks.capacity { waiting.removeFirst() }
    }

    mutating func acknowledge(_ id: UInt64) -> Bool {
        let count = waiting.count
        waiting.removeAll { $0.link.id == id }
        return waiting.count < count
    }

    mutating func replaceListener(_ new: LinkListener?) -> LinkListener? {
        defer { listener = new }
        return listener
    }

    /// The listener has left. For links that it may not have read a program can be started.
    mutating func listenerLeft(at now: BootInstant) {
        listener = nil
        for index in waiting.indices where now - waiting[index].arrivedAt > SchemeLinks.readingTime {
            waiting[index].needsNoStart = true
        }
    }

    /// The link with which the scheme's program is started now; nil if none needs it or the last start is too recent.
    mutating func takeStart(_ scheme: LinkScheme?, at now: BootInstant) -> DeepLink? {
        guard let due = startDue(scheme, at: now), due <= now, let scheme,
            let index = waiting.firstIndex(where: { !$0.needsNoStart })
        else { return nil }
        startedAt = now
        if scheme.takesURL {
            waiting[index].needsNoStart = true
        } else {
            // The started program listens and gets all links.
            for index in waiting.indices { waiting[index].needsNoStart = true }
        }
        return waiting[index].link
    }

    private func startDue(_ scheme: LinkScheme?, at now: BootInstant) -> BootInstant? {
        guard let scheme, scheme.hasCommand, listener == nil, waiting.contains(where: { !$0.needsNoStart }) else {
            return nil
        }
        return startedAt.map { max($0 + SchemeLinks.startInterval, now) } ?? now
    }

    func nextDue(_ scheme: LinkScheme?, at now: BootInstant) -> BootInstant? {
        [startDue(scheme, at: now), waiting.first.map { $0.arrivedAt + SchemeLinks.lifetime }].compactMap(\.self).min()
    }
}
