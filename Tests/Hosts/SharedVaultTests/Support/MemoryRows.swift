import RingbackBase
import SessionVault
import SharedVault
import Synchronization

/// A database in memory that does what the protocol says, and fails as told. All hosts share one; each has its own
/// ``MemoryRows/Connection``.
final class MemoryRows: Sendable {
    struct Stored: Sendable {
        var row: SharedRow
        /// When the lease is over, by the database's clock.
        var leaseEnd: Duration = .zero
        var attempts: [(attempt: SharedRow.Attempt, began: Duration)] = []
        /// When the candidates came, in their order.
        var came: [Duration] = []
        var steps: Set<[UInt8]> = []
    }
    struct State: Sendable {
        var rows: [RowKey: Stored] = [:]
        var listeners: [AsyncStream<RowKey?>.Continuation] = []
        var log: [String] = []
        /// Rows as a replica has them, which is behind.
        var replica: [RowKey: Stored] = [:]
    }
    let state = Mutex(State())
    let now: @Sendable () -> Duration

    init(now: @escaping @Sendable () -> Duration) { self.now = now }

    var log: [String] { state.withLock { $0.log } }
    func row(_ key: RowKey) -> SharedRow? { state.withLock { shown($0.rows[key], at: now()) } }
    var rows: [SharedRow] { state.withLock { state in state.rows.values.compactMap { shown($0, at: now()) } } }

    func replicate() { state.withLock { $0.replica = $0.rows } }
    func replicateAtRandom(_ isDone: Bool) { if isDone { replicate() } }

    /// The replica takes over: what it did not get is lost.
    func failOver() {
        let listeners = state.withLock { state in
            state.rows = state.replica
            return state.listeners
        }
        for listener in listeners { listener.yield(nil) }
    }

    func delete(_ key: RowKey) { state.withLock { $0.rows[key] = nil } }

    /// Puts an older row back, as an administrator of the database could.
    func replace(_ row: SharedRow) { state.withLock { $0.rows[row.key]?.row = row } }

    fileprivate func tell(_ key: RowKey) {
        for listener in state.withLock({ $0.listeners }) { listener.yield(key) }
    }

    fileprivate func shown(_ stored: Stored?, at now: Duration) -> SharedRow? {
        guard let stored else { return nil }
        var row = stored.row
        row.lease = row.lease.flatMap { lease in
            guard stored.leaseEnd > now else { return nil }
            return SharedRow.Lease(id: lease.id, host: lease.host, left: stored.leaseEnd - now)
        }
        row.openAttempts = stored.attempts.filter {
            now - $0.began < .seconds(3_600) || $0.attempt.parentVersion >= row.version
        }.map { open in
            var attempt = open.attempt
            attempt.age = now - open.began
            return attempt
        }
        return row
    }

    enum Fault: Sendable { case none, notReached, answerLost }

    final class Connection: SharedRows {
        let database: MemoryRows
        let host: String
        /// Asked for each statement.
        let fault: @Sendable (String) -> Fault
        let changes: AsyncStream<RowKey?>
        let facts: RowFacts
        /// Awaited once, after a row was read and before it is returned.
        let afterRead = Mutex<(@Sendable () async -> Void)?>(nil)

        init(
            _ database: MemoryRows, host: String, clock: Int? = nil,
            fault: @escaping @Sendable (String) -> Fault = { _ in .none }
        ) {
            self.database = database
            var facts = RowFacts()
            facts.clock = clock
            self.facts = facts
            self.host = host
            self.fault = fault
            let (stream, continuation) = AsyncStream.makeStream(of: RowKey?.self)
            changes = stream
            database.state.withLock { $0.listeners.append(continuation) }
        }

        private func run<Value>(
            _ name: String, _ body: (inout State, Duration) -> Value
        ) throws(DatabaseReason) -> Value {
            let fault = fault(name)
            guard fault != .notReached else { throw .noConnection }
            let now = database.now()
            let value = database.state.withLock { state in
                state.log.append("\(host) \(name)")
                return body(&state, now)
            }
            guard fault == .none else { throw .timedOut }
            return value
        }

        func read(_ keys: [RowKey]) async throws(DatabaseReason) -> [RowKey: SharedRow] {
            let found = try run("read") { state, now in
                keys.reduce(into: [:]) { $0[$1] = database.shown(state.rows[$1], at: now) }
            }
            if !found.isEmpty { await afterRead.withLock { $0.take() }?() }
            return found
        }

        func take(
            _ key: RowKey, version: Int64, id: LeaseID, intent: [UInt8], lasting: Duration
        ) async throws(DatabaseReason) -> RowOutcome {
            try run("take") { state, now in
                guard var stored = state.rows[key] else { return .refused(nil) }
                guard stored.row.version == version, stored.leaseEnd <= now || stored.row.lease == nil else {
                    return .refused(database.shown(stored, at: now))
                }
                stored.row.epoch += 1
                stored.row.lease = SharedRow.Lease(id: id, host: host, left: lasting)
                stored.leaseEnd = now + lasting
                let attempt = SharedRow.Attempt(
                    id: id, host: host, parentVersion: version, intent: intent, age: .zero)
                stored.attempts.insert((attempt, now), at: 0)
                state.rows[key] = stored
                return database.shown(stored, at: now).map { .done($0) } ?? .refused(nil)
            }
        }

        func append(
            _ received: SharedRow.Candidate, to key: RowKey, isFinal: Bool
        ) async throws(DatabaseReason) -> SharedRow {
            let row = try run("append") { state, now -> SharedRow? in
                guard var stored = state.rows[key] else { return nil }
                let (id, parentVersion) = (received.attempt, received.parentVersion)
                stored.attempts.removeAll { $0.attempt.id == id }
                let isHolder = stored.row.lease?.id == id && stored.leaseEnd > now
                if stored.steps.insert(id.bytes + [UInt8(truncatingIfNeeded: received.step)]).inserted {
                    if isHolder, stored.row.version == parentVersion {
                        stored.row.version = parentVersion + 1
                        stored.row.sealed = received.sealed
                        // What is older than an hour, and than the head that was refreshed now, is not needed.
                        let kept = stored.row.candidates.indices.filter {
                            now - stored.came[$0] < .seconds(3_600)
                                || stored.row.candidates[$0].parentVersion >= parentVersion
                        }
                        stored.row.candidates = kept.map { stored.row.candidates[$0] }
                        stored.came = kept.map { stored.came[$0] }
                    } else {
                        stored.came.insert(now, at: 0)
                        stored.row.candidates.insert(received, at: 0)
                    }
                }
                if isFinal, stored.row.lease?.id == id { stored.row.lease = nil }
                state.rows[key] = stored
                return database.shown(stored, at: now)
            }
            database.tell(key)
            guard let row else { throw .malformed }
            return row
        }

        func release(_ key: RowKey, attempt id: LeaseID, ends: Bool) async throws(DatabaseReason) {
            try run(ends ? "settle" : "release") { state, _ in
                if ends { state.rows[key]?.attempts.removeAll { $0.attempt.id == id } }
                if state.rows[key]?.row.lease?.id == id { state.rows[key]?.row.lease = nil }
            }
        }

        func put(
            _ sealed: [UInt8], in key: RowKey, version: Int64, lease: LeaseID?, overrides: Bool
        ) async throws(DatabaseReason) -> RowOutcome {
            let putting = try run("put") { state, now -> RowOutcome in
                guard var stored = state.rows[key] else {
                    guard version == 0 else { return .refused(nil) }
                    let row = SharedRow(key: key, version: 1, epoch: 0, sealed: sealed)
                    state.rows[key] = Stored(row: row)
                    return .done(row)
                }
                let isHeld = stored.row.lease.map { $0.id != lease && stored.leaseEnd > now } ?? false
                guard stored.row.version == version, overrides || !isHeld else {
                    return .refused(database.shown(stored, at: now))
                }
                stored.row.version += 1
                stored.row.sealed = sealed
                if overrides {
                    (stored.row.lease, stored.attempts, stored.row.candidates, stored.came) = (nil, [], [], [])
                }
                state.rows[key] = stored
                return database.shown(stored, at: now).map { .done($0) } ?? .refused(nil)
            }
            database.tell(key)
            return putting
        }

        func restore(_ sealed: [UInt8], in key: RowKey, version: Int64) async throws(DatabaseReason) -> SharedRow {
            let row = try run("restore") { state, now -> SharedRow? in
                var stored = state.rows[key] ?? Stored(row: SharedRow(key: key, version: 0, epoch: 0, sealed: []))
                if stored.row.version < version {
                    stored.row.version = version
                    stored.row.sealed = sealed
                    state.rows[key] = stored
                }
                return database.shown(stored, at: now)
            }
            database.tell(key)
            guard let row else { throw .malformed }
            return row
        }
    }
}
