internal import Glibc

/// The open connections of a server, of all its listening sockets, ordered by age, and their maximum number. Used on
/// the loop's thread only.
struct ConnectionRegistry {
    private let most: Int
    private var oldest: HTTPConnection?
    private var youngest: HTTPConnection?
    private(set) var count = 0
    /// No walk over the connections before this time, in ns of the loop.
    private var nextWalk: Int64 = 0
    /// No ``oldestOfCrowd(besides:now:)`` before this time.
    private var nextCount: Int64 = 0
    /// The server is shutting down: each connection closes after its current response.
    var isClosing = false

    init(most: Int) {
        self.most = most
    }

    /// True if the maximum number of connections is reached.
    var isFull: Bool { count >= most }

    /// A walk over more connections is not repeated for ``walkPause``.
    static let longWalk = 1_024
    /// In ns.
    static let walkPause: Int64 = 10_000_000

    /// The oldest connection that is not handling a complete request. Connections whose response is still being sent
    /// come last.
    ///
    /// Attack: a client keeps thousands of connections busy, so that each further connection leads to a long walk, which
    /// delays the other clients. After a long walk there is none for a while, and nil is returned.
    mutating func oldestIdle(now: Int64) -> HTTPConnection? {
        guard now >= nextWalk else { return nil }
        var (candidate, sending) = (oldest, HTTPConnection?.none)
        var visited = 0
        defer { if visited > ConnectionRegistry.longWalk { nextWalk = now + ConnectionRegistry.walkPause } }
        while let connection = candidate {
            visited += 1
            if connection.isIdle {
                guard connection.isBlocked else { return connection }
                sending = sending ?? connection
            }
            candidate = connection.younger
        }
        return sending
    }

    /// The oldest connection of the process that has more than half of all places, where none is idle. Nil if there is no
    /// such process, or if it is the newcomer's.
    ///
    /// Attack: a program opens event streams, or requests that wait, until no place is left for others.
    mutating func oldestOfCrowd(besides newcomer: Peer, now: Int64) -> HTTPConnection? {
        guard now >= nextCount else { return nil }
        nextCount = now + ConnectionRegistry.walkPause
        // If one process has more than half, it is the one that is left when different ones are struck out in pairs.
        var (candidate, lead) = (pid_t(0), 0)
        for connection in all {
            guard let process = connection.peer.process else { continue }
            if lead == 0 { candidate = process }
            lead += process == candidate ? 1 : -1
        }
        guard lead > 0, newcomer.process != candidate else { return nil }
        let crowd = all.filter { $0.peer.process == candidate }
        return crowd.count > most / 2 ? crowd.first : nil
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

    /// All connections, the oldest first.
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
    /// The process of a local peer.
    fileprivate var process: pid_t? { if case .local(_, let pid) = self { pid } else { nil } }
}
