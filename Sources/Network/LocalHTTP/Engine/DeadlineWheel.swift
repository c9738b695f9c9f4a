/// The connections that have deadlines, by time. Setting and clearing a deadline takes constant time.
///
/// Each connection has at most one entry, for the earliest time at which one of its deadlines may have passed. At that
/// time the entry is removed and ``HTTPConnection/check(at:)`` is called, which enters the connection again if it still
/// has a deadline. When a deadline is cleared, the entry stays, and the loop wakes up once without effect. When a
/// connection closes, its entry is removed.
struct DeadlineWheel {
    /// The resolution of deadlines in nanoseconds. It is rounded up.
    static let tick: Int64 = 32_000_000
    private static let count: Int64 = 512

    private var slots = [[HTTPConnection]](repeating: [], count: Int(count))
    private var entries = 0
    /// Every slot up to this tick is empty.
    private var done: Int64 = 0
    /// The first tick that has entries, if there are any.
    private var next: Int64 = 0

    var isEmpty: Bool { entries == 0 }

    /// Enters a connection for a deadline, in nanoseconds of the loop's clock.
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

    /// Removes a connection's entry, if it has one. Otherwise the object would stay in memory until the deadline.
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

    /// Milliseconds until the next entry is due; -1 if there is none.
    func timeout(now: Int64) -> Int32 {
        guard !isEmpty else { return -1 }
        let left = next * DeadlineWheel.tick - now
        return left <= 0 ? 0 : Int32(clamping: left / 1_000_000 + 1)
    }

    /// Removes and returns the connections whose entries are due.
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
