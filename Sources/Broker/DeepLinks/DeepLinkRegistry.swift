public import BrokerCore
public import RingbackBase
internal import Synchronization

/// Receives URLs of configured custom schemes that are not callbacks, and delivers them to the app that listened last.
/// One that may contain a secret of a sign-in is never delivered, see ``LinkRules``. Without a listener the configured
/// program is started, and the link is kept in memory for a minute.
public final class DeepLinkRegistry: Sendable {
    public enum Reception: Sendable, Equatable {
        /// It is a callback, or may be one: the broker must handle it.
        case callback
        /// It is kept until an app acknowledges it. `hasListener`: an app is listening.
        case kept(DeepLink, hasListener: Bool)
        /// Its scheme is not configured; a text for the user.
        case refused(String)
    }

    private struct State {
        var tables: [String: LinkScheme] = [:]
        var schemes: [String: SchemeLinks] = [:]
        var nextID: UInt64
        /// The ids of the last acknowledged links, so that a repeated acknowledgement succeeds.
        var acknowledged: [UInt64] = []
        var look: (due: BootInstant, ticket: UInt64)?
        var tickets: UInt64 = 0
    }
    private let state: Mutex<State>
    private let broker: Broker
    private let clock: BrokerClock
    private let work: Work
    private let record: @Sendable (BrokerFact) -> Void
    private let startApplication: @Sendable (_ scheme: String, _ url: Secret) async -> String?

    private static let memory = 256
    /// The longest sleep toward an instant: timers do not notice that a machine was suspended.
    private static let longestSleep: Duration = .seconds(30)

    /// - Parameter startApplication: starts a scheme's program for a link. Returns nil, or why it could not be started.
    public init(
        broker: Broker, clock: BrokerClock = .system, work: Work = Work(),
        record: @escaping @Sendable (BrokerFact) -> Void = { _ in },
        startApplication: @escaping @Sendable (_ scheme: String, _ url: Secret) async -> String?
    ) {
        self.broker = broker
        self.clock = clock
        self.work = work
        self.record = record
        self.startApplication = startApplication
        state = Mutex(State(nextID: EventBus.now()))
    }

    /// Sets the configured schemes, after the broker was given its accounts. Links and listeners of others end.
    public func configure(_ tables: [LinkScheme]) async {
        let redirectURIs = await broker.redirectURIs().configured
        let configured = LinkRules(schemes: tables.map(\.name), redirectURIs: redirectURIs).schemes
        let ended = state.withLock { state -> [LinkListener] in
            state.tables = Dictionary(tables.map { ($0.name, $0) }) { _, last in last }
            let gone = state.schemes.keys.filter { !configured.contains($0) }
            return gone.compactMap { state.schemes.removeValue(forKey: $0)?.listener }
        }
        for listener in ended { listener.end(.removed) }
    }

    public func receive(_ text: String) async -> Reception {
        guard let url = try? WebURL(parsing: text) else { return .callback }
        let kind = await rules().kind(of: url)
        guard kind != .callback, await !broker.remembersFlow(withAnyOf: LinkRules.keys(in: url)) else {
            return .callback
        }
        switch kind {
        case .callback: return .callback
        case .deepLink(let scheme): return keep(Secret(text), scheme)
        case .foreign(let scheme): return .refused(DeepLinkRegistry.notConfigured(scheme))
        }
    }

    private static func notConfigured(_ scheme: String) -> String {
        "The scheme \(scheme) is not configured. Add [schemes.\"\(scheme)\"] to the configuration, or an account with such "
            + "a redirect URI, and reload."
    }

    /// For a URL that matched no sign-in: that its scheme is not configured. Nil for configured schemes and http(s).
    public func whyForeign(_ text: String) async -> String? {
        guard let url = try? WebURL(parsing: text), url.scheme != "http", url.scheme != "https",
            await !rules().schemes.contains(url.scheme)
        else { return nil }
        return DeepLinkRegistry.notConfigured(url.scheme)
    }

    /// Starts listening to a scheme's links and replaces the previous listener. Nil if the scheme is not configured.
    public func listen(to scheme: String, peer: PolicyPeer?) async -> LinkListener? {
        let scheme = scheme.lowercased()
        guard await rules().schemes.contains(scheme) else { return nil }
        let listener = LinkListener(scheme: scheme, peer: peer, registry: self)
        let now = clock.bootInstant
        let former = state.withLock { state in
            state.schemes[scheme, default: SchemeLinks()].forgetOld(at: now)
            return state.schemes[scheme, default: SchemeLinks()].replaceListener(listener)
        }
        if let former {
            former.end(.replaced)
            record(.linkListenerReplaced(scheme: scheme, by: peer, former: former.peer))
            broker.bus.post(BrokerEvent(kind: .listenerReplaced, scheme: scheme, at: clock.wallInstant))
        }
        return listener
    }

    public func acknowledge(_ id: UInt64) -> Bool {
        state.withLock { state in
            for scheme in state.schemes.keys where state.schemes[scheme]?.acknowledge(id) == true {
                state.acknowledged.append(id)
                if state.acknowledged.count > DeepLinkRegistry.memory { state.acknowledged.removeFirst() }
                return true
            }
            return state.acknowledged.contains(id)
        }
    }

    public var heard: [String] { state.withLock { $0.schemes.filter { $0.value.listener != nil }.keys.sorted() } }

    // MARK: For listeners

    func links(for listener: LinkListener, after id: UInt64) -> [DeepLink] {
        let now = clock.bootInstant
        return state.withLock { state in
            guard state.schemes[listener.scheme]?.listener === listener else { return [] }
            state.schemes[listener.scheme]?.forgetOld(at: now)
            return state.schemes[listener.scheme]?.links(after: id) ?? []
        }
    }

    func leave(_ listener: LinkListener) {
        let now = clock.bootInstant
        let start = state.withLock { state -> DeepLink? in
            guard state.schemes[listener.scheme]?.listener === listener else { return nil }
            state.schemes[listener.scheme]?.forgetOld(at: now)
            state.schemes[listener.scheme]?.listenerLeft(at: now)
            let table = state.tables[listener.scheme]
            return state.schemes[listener.scheme]?.takeStart(table, at: now)
        }
        if let start { begin(start) }
        scheduleCheck()
    }

    // MARK: Waiting and starting

    private func rules() async -> LinkRules {
        let tables = state.withLock { Array($0.tables.keys) }
        let redirects = await broker.redirectURIs()
        return LinkRules(schemes: tables, redirectURIs: redirects.configured, awaited: redirects.ofFlows)
    }

    private func keep(_ url: Secret, _ scheme: String) -> Reception {
        let (now, at) = (clock.bootInstant, broker.now)
        let kept = state.withLock { state -> (link: DeepLink, listener: LinkListener?, start: DeepLink?) in
            let link = DeepLink(id: state.nextID, scheme: scheme, url: url, at: at)
            state.nextID += 1
            var links = state.schemes[scheme] ?? SchemeLinks()
            links.append(link, at: now)
            let start = links.takeStart(state.tables[scheme], at: now)
            state.schemes[scheme] = links
            return (link, links.listener, start)
        }
        kept.listener?.wake()
        broker.bus.post(BrokerEvent(kind: .deepLink, scheme: scheme, at: at))
        if let start = kept.start { begin(start) }
        scheduleCheck()
        return .kept(kept.link, hasListener: kept.listener != nil)
    }

    private func begin(_ link: DeepLink) {
        work.start { [self] in
            if let reason = await startApplication(link.scheme, link.url) {
                record(.applicationNotStarted(scheme: link.scheme, reason: reason))
            } else {
                record(.applicationStarted(scheme: link.scheme))
            }
        }
    }

    /// Plans a call of `look()` for the next start or expiry. When it is planned again for an earlier time, the ticket
    /// changes and the old timer does nothing.
    private func scheduleCheck() {
        let now = clock.bootInstant
        let plan = state.withLock { state -> (due: BootInstant, ticket: UInt64)? in
            let dues = state.schemes.compactMap { $0.value.nextDue(state.tables[$0.key], at: now) }
            guard let due = dues.min(), state.look.map({ due < $0.due }) ?? true else { return nil }
            state.tickets += 1
            state.look = (due, state.tickets)
            return state.look
        }
        guard let plan else { return }
        work.startTimer { [self] in
            while true {
                let left = plan.due - clock.bootInstant
                guard state.withLock({ $0.look?.ticket }) == plan.ticket else { return }
                guard left > .zero else { break }
                guard (try? await clock.sleep(min(left, DeepLinkRegistry.longestSleep))) != nil else { return }
            }
            look()
        }
    }

    private func look() {
        let now = clock.bootInstant
        let starts = state.withLock { state -> [DeepLink] in
            var starts: [DeepLink] = []
            for (name, known) in state.schemes {
                var links = known
                links.forgetOld(at: now)
                if let start = links.takeStart(state.tables[name], at: now) { starts.append(start) }
                state.schemes[name] = links.isIdle(at: now) ? nil : links
            }
            state.look = nil
            return starts
        }
        for start in starts { begin(start) }
        scheduleCheck()
    }
}
