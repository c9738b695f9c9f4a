internal import Glibc

/// The open connections of a server, ordered by age, and their maximum number. Used on the loop's thread only.
struct ConnectionRegistry {
    private let most: Int
    private var oldest: HTTPConnection?
    private var youngest: HTTPConnection?
    private(set) var count = 0
    /// No search for an idle connection before this time, in ns of the loop.
    private var nextSearch: Int64 = 0
    /// The connections of each process, counted when all places were taken and none was idle.
    private var counts: [pid_t: Int] = [:]
    private var nextCount: Int64 = 0
    /// The server is shutting down: each connection closes after its current response.
    var isClosing = false

    init(most: Int) {
        self.most = most
    }

    var isFull: Bool { count >= most }
    /// A search over more connections is not repeated for ``searchPause``, in ns.
    static let longSearch = 1_024
    static let searchPause: Int64 = 10_000_000

    enum Search {
        case found(HTTPConnection)
        case noneIsIdle
        /// There was a long search just now.
        case notNow
    }

    /// The oldest connection that is not handling a complete request, the one whose response is still being sent last.
    /// Attack: a client keeps thousands of connections busy, so that each further connection leads to a long search,
    /// which delays the other clients. After a long search there is none for a while.
    mutating func oldestIdle(now: Int64) -> Search {
        guard now >= nextSearch else { return .notNow }
        var (candidate, sending) = (oldest, HTTPConnection?.none)
        var visited = 0
        defer { if visited > ConnectionRegistry.longSearch { nextSearch = now + ConnectionRegistry.searchPause } }
        while let connection = candidate {
            visited += 1
            if connection.isIdle {
                guard connection.isBlocked else { return .found(connection) }
                sending = sending ?? connection
            }
            candidate = connection.younger
        }
        return sending.map { .found($0) } ?? .noneIsIdle
    }

    /// The oldest connection of the process that has most of them, for a newcomer of a process that has fewer, where
    /// none is idle. Processes that cannot be seen from here have no number, and are left out. Attack: a program opens
    /// event streams, or requests that wait, until no place is left for others. (One that starts a process for each
    /// connection is not recognized.) The connections are counted at most once in ``searchPause``.
    mutating func oldestOfCrowd(besides newcomer: Peer, now: Int64) -> HTTPConnection? {
        guard let process = newcomer.process else { return nil }
        if now >= nextCount { countProcesses(now: now) }
        guard let most = counts.max(by: { $0.value < $1.value }), most.value > counts[process, default: 0] + 1 else {
            return nil
        }
        var candidate = oldest
        while let connection = candidate, connection.peer.process != most.key { candidate = connection.younger }
        counts[most.key] = most.value - 1
        counts[process, default: 0] += 1
        return candidate
    }

    private mutating func countProcesses(now: Int64) {
        nextCount = now + ConnectionRegistry.searchPause
        counts = [:]
        for connection in all {
            if let process = connection.peer.process { counts[process, default: 0] += 1 }
        }
    }

    mutating func append(_ connection: HTTPConnection) {
        connection.older = youngest
        if let youngest { youngest.younger = connection } else { oldest = connection }
        youngest = connection
        count += 1
    }

    mutating func remove(_ connection: HTTPConnection) {
        if let older = connection.older { older.younger = connection.younger } else { oldest = connection.younger }
        if let younger = connection.younger { younger.older = connection.older } else { youngest = connection.older }
        (connection.older, connection.younger) = (nil, nil)
        count -= 1
    }

    /// The oldest first.
    var all: [HTTPConnection] {
        var found: [HTTPConnection] = []
        var next = oldest
        while let connection = next {
            found.append(connection)
            next = connection.younger
        }
        return found
    }
}

extension Peer {
    fileprivate var process: pid_t? { if case .local(_, let pid) = self, pid > 0 { pid } else { nil } }
}

/// The processes of the last clients, each held by a descriptor. Used on the loop's thread only.
///
/// Race: the number of a process may be another process's later. An entry therefore counts only for connections that
/// its listener accepted after the one that it was made for, and only if its process is still alive when the entry is
/// used: whoever needs the process calls ``PeerProcess/isAlive`` after everything that it reads about it. The kernel
/// hands a listener's connections out in the order in which they were made. An entry whose process has ended is dropped
/// when it is found.
struct KnownProcesses {
    private struct Entry {
        let number: Int32
        /// Of the connection that it was made for.
        let listener: UInt64
        let age: UInt64
        var process: PeerProcess
        /// In the loop's time (ns).
        var seen: Int64
    }

    /// Each takes a descriptor.
    private static let most = 8
    /// A process is not looked at again before, in ns.
    private static let interval: Int64 = 1_000_000_000
    private var entries: [Entry] = []
    /// Of the next new entry.
    private var turn = 0

    /// The process at the other end of a listener's connection of this age. It may have ended within the last second.
    mutating func find(_ number: Int32, at listener: UInt64, age: UInt64, now: Int64) -> PeerProcess? {
        guard let index = entries.firstIndex(where: { $0.number == number && $0.listener == listener }) else {
            return nil
        }
        if now - entries[index].seen >= KnownProcesses.interval {
            guard entries[index].process.isAlive else {
                entries.remove(at: index)
                return nil
            }
            entries[index].seen = now
        }
        return entries[index].age < age ? entries[index].process : nil
    }

    mutating func keep(_ process: PeerProcess, _ number: Int32, at listener: UInt64, age: UInt64, now: Int64) {
        // Processes that this one cannot see all have the number 0.
        guard number > 0, !entries.contains(where: { $0.number == number && $0.listener == listener }) else { return }
        let entry = Entry(number: number, listener: listener, age: age, process: process, seen: now)
        if entries.count < KnownProcesses.most {
            entries.append(entry)
        } else {
            entries[turn] = entry
            turn = (turn + 1) % KnownProcesses.most
        }
    }

    /// Closes the descriptors that nothing else uses. False if there are none.
    mutating func giveUp() -> Bool {
        let count = entries.count
        var inUse: [Entry] = []
        for index in entries.indices where !isKnownUniquelyReferenced(&entries[index].process) {
            inUse.append(entries[index])
        }
        entries = inUse
        return inUse.count < count
    }
}
