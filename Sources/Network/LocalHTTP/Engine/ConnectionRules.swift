/// What the connections of a server share. The variables are used on the loop's thread only.
final class ConnectionRules: @unchecked Sendable {
    let limits: ServerLimits
    let accepts: @Sendable (Peer) -> Bool
    let ownerOf: (@Sendable (Peer) -> UInt32?)?
    let refusal: @Sendable (Int) -> ServerResponse
    let immediate: (@Sendable (ServerRequest) -> ServerResponse?)?
    /// Passes a request to the asynchronous handler. False if the server is shutting down.
    let handOver: @Sendable (Exchange) -> Bool
    /// Called when another process has shut a listening socket down.
    let isLost: @Sendable () -> Void
    /// See ``HeadCache``.
    let heads: HeadCache?
    /// For responses of the immediate handler only.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var repeatedHead = RepeatedHead()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var registry: ConnectionRegistry

    init(
        limits: ServerLimits, accepts: @escaping @Sendable (Peer) -> Bool, ownerOf: (@Sendable (Peer) -> UInt32?)?,
        refusal: @escaping @Sendable (Int) -> ServerResponse,
        immediate: (@Sendable (ServerRequest) -> ServerResponse?)?,
        handOver: @escaping @Sendable (Exchange) -> Bool, isLost: @escaping @Sendable () -> Void = {}
    ) {
        self.limits = limits
        self.accepts = accepts
        self.ownerOf = ownerOf
        self.refusal = refusal
        self.immediate = immediate
        self.handOver = handOver
        self.isLost = isLost
        heads = immediate == nil ? nil : HeadCache()
        registry = ConnectionRegistry(most: limits.maxConnections)
    }

    /// The rules of a connection that is not open.
    static let nobody = ConnectionRules(
        limits: ServerLimits(), accepts: { _ in false }, ownerOf: nil, refusal: { ServerResponse(status: $0) },
        immediate: nil, handOver: { _ in false })

    /// If the maximum is reached, the oldest connection without a complete request is closed first. If there is none,
    /// the oldest of the process with most connections is closed. False if no connection gives way, or if the server is
    /// closing.
    func admit(_ connection: HTTPConnection) -> Bool {
        guard !registry.isClosing else { return false }
        if registry.isFull {
            // Attack: a client opens connections and sends nothing, to block other clients.
            let now = connection.loop.now
            let former: HTTPConnection? =
                switch registry.oldestIdle(now: now) {
                case .found(let idle): idle
                case .noneIsIdle: registry.oldestOfCrowd(besides: connection.peer, now: now)
                case .notNow: nil
                }
            guard let former else { return false }
            former.drop()
        }
        registry.append(connection)
        return true
    }

    /// Called after ``closeAll(_:)``, when all responses are sent.
    private var whenSent: (@Sendable () -> Void)?

    /// Accepts no more connections. The last responses that are being sent are completed, those of streams excepted;
    /// then `sent` is called.
    func closeAll(_ sent: @escaping @Sendable () -> Void = {}) {
        registry.isClosing = true
        for connection in registry.all { connection.end() }
        whenSent = sent
        noteSent()
    }

    /// Called when a connection has sent all its bytes or is closed.
    func noteSent() {
        guard whenSent != nil, !registry.all.contains(where: \.isBlocked) else { return }
        whenSent.take()?()
    }
}

/// The connections that have deadlines, by time. Setting and clearing a deadline takes constant time. Each connection
/// has at most one entry, for the earliest time at which one of its deadlines may have passed. Then the entry is
/// removed and ``HTTPConnection/check(at:)`` is called, which enters the connection again if it still has a deadline.
/// When a deadline is cleared, the entry stays, and the loop wakes up once without effect.
struct DeadlineWheel {
    /// In nanoseconds, rounded up.
    static let tick: Int64 = 32_000_000
    private static let count: Int64 = 512
    private var slots = [[HTTPConnection]](repeating: [], count: Int(count))
    private var entries = 0
    /// Every slot up to this tick is empty.
    private var done: Int64 = 0
    /// The first tick that has entries.
    private var next: Int64 = 0
    var isEmpty: Bool { entries == 0 }

    /// `due` and `now` are in nanoseconds of the loop's clock.
    mutating func enter(_ connection: HTTPConnection, due: Int64, now: Int64) {
        if isEmpty { done = now / DeadlineWheel.tick }
        // A deadline beyond the last slot gets the last slot. The connection is checked then and entered again.
        let wanted = min(due / DeadlineWheel.tick + 1, done + DeadlineWheel.count - 1)
        let tick = max(wanted, done + 1)
        if let place = connection.deadlinePlace {
            if place.tick <= tick { return }
            remove(connection)
        }
        let slot = Int(tick % DeadlineWheel.count)
        connection.deadlinePlace = (tick, slots[slot].count)
        slots[slot].append(connection)
        next = isEmpty ? tick : min(next, tick)
        entries += 1
    }

    /// Otherwise the object would stay in memory until the deadline.
    mutating func remove(_ connection: HTTPConnection) {
        guard let place = connection.deadlinePlace else { return }
        connection.deadlinePlace = nil
        entries -= 1
        let slot = Int(place.tick % DeadlineWheel.count)
        let last = slots[slot].removeLast()
        if last !== connection {
            slots[slot][place.index] = last
            last.deadlinePlace = place
        }
        advance()
    }

    mutating func removeAll() {
        for connection in slots.joined() { connection.deadlinePlace = nil }
        self = DeadlineWheel()
    }

    /// Moves `next` to the first tick with entries.
    private mutating func advance() {
        guard !isEmpty else { return }
        while slots[Int(next % DeadlineWheel.count)].isEmpty { next += 1 }
    }

    /// In milliseconds; -1 if there is no entry.
    func timeout(now: Int64) -> Int32 {
        guard !isEmpty else { return -1 }
        let left = next * DeadlineWheel.tick - now
        return left <= 0 ? 0 : Int32(clamping: left / 1_000_000 + 1)
    }

    mutating func takeDue(now: Int64) -> [HTTPConnection] {
        guard !isEmpty, now >= next * DeadlineWheel.tick else { return [] }
        let current = now / DeadlineWheel.tick
        var due: [HTTPConnection] = []
        // After a long pause each slot is visited only once.
        for tick in next...min(current, next + DeadlineWheel.count - 1) {
            let slot = Int(tick % DeadlineWheel.count)
            for connection in slots[slot] { connection.deadlinePlace = nil }
            entries -= slots[slot].count
            due += slots[slot]
            slots[slot].removeAll(keepingCapacity: slots[slot].count < 16)
        }
        done = current
        next = current + 1
        advance()
        return due
    }
}
