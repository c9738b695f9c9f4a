public import Secrets

/// A link for an app. Its URL is nobody else's business: it prints nowhere.
public struct DeepLink: Sendable, Equatable {
    /// Grows with each link, also across restarts.
    public let id: UInt64
    public let scheme: String
    public let url: Secret
    /// When it came, Unix seconds.
    public let at: Int
}

/// A scheme that has a table in the configuration.
public struct LinkScheme: Sendable, Equatable {
    /// In small letters.
    public let name: String
    /// There is a program to start when no app listens.
    public let hasCommand: Bool
    /// That program is given the link as an argument: each link is a start of its own.
    public let takesURL: Bool

    public init(name: String, hasCommand: Bool, takesURL: Bool) {
        self.name = name
        self.hasCommand = hasCommand
        self.takesURL = takesURL
    }
}

/// The links of one scheme that nobody has acknowledged: whoever listens gets all of them, in order. Nothing here waits
/// or calls; instants are milliseconds since boot.
struct SchemeLinks {
    private struct Waiting {
        let link: DeepLink
        let arrivedAt: Int
        /// A program was started for it, or need not be.
        var isCarried = false
    }
    private var waiting: [Waiting] = []
    private(set) var listener: LinkListener?
    private var startedAt: Int?

    /// More links than these wait for nobody: the oldest goes.
    static let capacity = 16
    /// A person who has clicked an hour ago expects nothing any more.
    static let lifetime = 60_000
    /// A page that follows a link again and again starts nothing more often.
    static let startInterval = 10_000
    /// A link this young when its listener goes away may never have been read.
    static let departure = 5_000

    /// True if nothing is to be remembered of the scheme.
    func isIdle(at now: Int) -> Bool {
        listener == nil && waiting.isEmpty && startedAt.map { now - $0 >= SchemeLinks.startInterval } ?? true
    }

    /// The links behind the one that was given last.
    func links(after id: UInt64) -> [DeepLink] { waiting.map(\.link).filter { $0.id > id } }

    mutating func forgetOld(at now: Int) {
        waiting.removeAll { now - $0.arrivedAt >= SchemeLinks.lifetime }
    }

    mutating func append(_ link: DeepLink, at now: Int) {
        forgetOld(at: now)
        waiting.append(Waiting(link: link, arrivedAt: now))
        if waiting.count > SchemeLinks.capacity { waiting.removeFirst() }
    }

    /// False if it is not here.
    mutating func acknowledge(_ id: UInt64) -> Bool {
        let count = waiting.count
        waiting.removeAll { $0.link.id == id }
        return waiting.count < count
    }

    /// The newest listener gets the links; the former one is given back.
    mutating func replaceListener(_ new: LinkListener?) -> LinkListener? {
        defer { listener = new }
        return listener
    }

    /// Its listener went away, by itself.
    mutating func listenerLeft(at now: Int) {
        listener = nil
        for index in waiting.indices where now - waiting[index].arrivedAt > SchemeLinks.departure {
            waiting[index].isCarried = true
        }
    }

    /// Takes the right to start the scheme's program now, and gives the link to start it with; nil if there is nothing
    /// to start it for, or it is too soon.
    mutating func takeStart(_ scheme: LinkScheme?, at now: Int) -> DeepLink? {
        guard let due = startDue(scheme, at: now), due <= now, let scheme,
            let index = waiting.firstIndex(where: { !$0.isCarried })
        else { return nil }
        startedAt = now
        if scheme.takesURL {
            waiting[index].isCarried = true
        } else {
            // Who listens gets all of them.
            for index in waiting.indices { waiting[index].isCarried = true }
        }
        return waiting[index].link
    }

    /// When the program is to be started; nil if it is not.
    private func startDue(_ scheme: LinkScheme?, at now: Int) -> Int? {
        guard let scheme, scheme.hasCommand, listener == nil, waiting.contains(where: { !$0.isCarried }) else {
            return nil
        }
        return startedAt.map { max($0 + SchemeLinks.startInterval, now) } ?? now
    }

    /// When something is to be done next.
    func nextDue(_ scheme: LinkScheme?, at now: Int) -> Int? {
        [startDue(scheme, at: now), waiting.first.map { $0.arrivedAt + SchemeLinks.lifetime }].compactMap(\.self).min()
    }
}
