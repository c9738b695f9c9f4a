public import BrokerCore
public import Secrets

/// A link for an app. Its URL is a secret, so it is never printed.
public struct DeepLink: Sendable, Equatable {
    /// Increases with each link, also across restarts.
    public let id: UInt64
    public let scheme: String
    public let url: Secret
    /// When it arrived.
    public let at: WallInstant
}

/// A scheme that has a table in the configuration.
public struct LinkScheme: Sendable, Equatable {
    /// In lower case.
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
    /// The minimum time between two starts of the program, so that a web page that opens links repeatedly cannot start
    /// it more often.
    static let startInterval: Duration = .seconds(10)
    /// If its listener leaves within this time after a link arrived, the listener may not have read it.
    static let readingTime: Duration = .seconds(5)

    /// True if nothing has to be remembered for the scheme.
    func isIdle(at now: BootInstant) -> Bool {
        listener == nil && waiting.isEmpty && startedAt.map { now - $0 >= SchemeLinks.startInterval } ?? true
    }

    /// The links after the one with this id.
    func links(after id: UInt64) -> [DeepLink] { waiting.map(\.link).filter { $0.id > id } }

    mutating func forgetOld(at now: BootInstant) {
        waiting.removeAll { now - $0.arrivedAt >= SchemeLinks.lifetime }
    }

    mutating func append(_ link: DeepLink, at now: BootInstant) {
        forgetOld(at: now)
        waiting.append(Waiting(link: link, arrivedAt: now))
        if waiting.count > SchemeLinks.capacity { waiting.removeFirst() }
    }

    /// Returns false if the link is not kept here.
    mutating func acknowledge(_ id: UInt64) -> Bool {
        let count = waiting.count
        waiting.removeAll { $0.link.id == id }
        return waiting.count < count
    }

    /// Sets the new listener and returns the former one.
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

    /// Decides that the scheme's program is started now. Returns the link to start it with; nil if none needs it or the
    /// last start is too recent.
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

    /// When the program must be started; nil if it need not.
    private func startDue(_ scheme: LinkScheme?, at now: BootInstant) -> BootInstant? {
        guard let scheme, scheme.hasCommand, listener == nil, waiting.contains(where: { !$0.needsNoStart }) else {
            return nil
        }
        return startedAt.map { max($0 + SchemeLinks.startInterval, now) } ?? now
    }

    /// When something is due next: a start or an expiry.
    func nextDue(_ scheme: LinkScheme?, at now: BootInstant) -> BootInstant? {
        [startDue(scheme, at: now), waiting.first.map { $0.arrivedAt + SchemeLinks.lifetime }].compactMap(\.self).min()
    }
}
