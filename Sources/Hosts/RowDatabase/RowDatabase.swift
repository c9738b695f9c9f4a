public import PostgresClient
public import RingbackBase
public import SharedVault
internal import Synchronization

/// The rows and the hosts of one owner in a PostgreSQL database, for one host of that owner. Every function of the
/// schema can be called again with the same arguments and then changes nothing more. So a call whose connection was
/// lost before its answer came is made once more.
public final class RowDatabase: SharedRows, SharedHosts {
    /// A statement has so long, with the time to connect.
    public static let limit: Duration = .seconds(5)
    private static let limitOfRead: Duration = .seconds(15)
    private static let many = 16
    private static let batch = 500
    let client: PostgresClient
    let url: PostgresURL
    let configured: PostgresPassword
    /// The password that is used before the configured one.
    private let given: Given
    let notices = RowChanges()
    private let state = Mutex((facts: RowFacts(), listener: PostgresListener?.none, clock: ServerClock()))
    private let now: (@Sendable () -> Duration)?

    /// A class of its own, since the connections are asked for it.
    private final class Given: Sendable { let password = Mutex<Secret?>(nil) }

    /// Connects when it is first asked, and for changes with ``start()``. Without `now` it asks for no clock.
    public init(_ url: PostgresURL, password: PostgresPassword, now: (@Sendable () -> Duration)? = nil) {
        let given = Given()
        client = PostgresClient(url, password: .first({ given.password.withLock { $0 } }, else: password))
        (self.url, configured, self.given, self.now) = (url, password, given, now)
    }

    deinit { shutdown() }

    /// Begins to wait for changes, until ``shutdown()``.
    public func start() {
        var plan = PostgresListener.Plan(
            channel: "SELECT ringback.channel($1)", question: "SELECT * FROM ringback.pulse($1)",
            values: [.integer(Schema.version)])
        plan.intervalWithoutNotifications = .seconds(3)
        let listener = PostgresListener(client, plan) { [weak self] in self?.note($0) }
        state.withLock { $0.listener = listener }
    }

    public func shutdown() {
        state.withLock { $0.listener.take() }?.stop()
        client.shutdown()
        notices.finish()
    }

    public func use(_ password: Secret?) {
        given.password.withLock { $0 = password }
        // What failed with another password is tried again at once.
        tryAgain()
    }

    /// The network may be back: does not wait for the end of a pause between attempts to connect.
    public func tryAgain() {
        client.tryAgain()
        state.withLock { $0.listener }?.tryAgain()
    }

    public var changes: AsyncStream<RowKey?> { notices.listen() }

    public var facts: RowFacts {
        state.withLock { state in
            var facts = state.facts
            facts.clock = state.clock.boot
            return facts
        }
    }

    private func note(_ event: PostgresListener.Event) {
        switch event {
        case .connected(let listens):
            state.withLock { state in
                state.facts.listens = listens
                state.clock.readAgain()
            }
            notices.noteConnection(listens: listens)
        case .notified(let payload): notices.noteNotification(payload)
        case .asked(let rows):
            guard rows.count == 1, let standby = try? rows[0].flag(4) else { return }
            state.withLock { $0.facts.hasSynchronousStandby = standby }
            notices.note(RowChanges.Pulse(numbers: Array(rows[0].values.prefix(3)), untold: rows[0].values[3]))
        case .lost:
            // The connections for statements may be there still.
            if client.failure != nil { return }
            notices.noteLoss()
        }
    }

    public func read(_ keys: [RowKey]) async throws(DatabaseReason) -> [RowKey: SharedRow] {
        var rows: [RowKey: SharedRow] = [:]
        for start in stride(from: 0, to: keys.count, by: Self.batch) {
            rows.merge(try await read(part: keys[start..<min(start + Self.batch, keys.count)])) { $1 }
        }
        return rows
    }

    private func read(part keys: ArraySlice<RowKey>) async throws(DatabaseReason) -> [RowKey: SharedRow] {
        do throws(DatabaseReason) {
            return try await parts(
                "ringback.read($1, $2)", [.integer(Schema.version), .bytesList(keys.map(\.bytes))],
                within: keys.count > Self.many ? Self.limitOfRead : Self.limit
            ).rows
        } catch .tooMuch where keys.count > 1 {
            // They are large, and come in several results.
            let middle = keys.startIndex + keys.count / 2
            let rows = try await read(part: keys[..<middle])
            return rows.merging(try await read(part: keys[middle...])) { $1 }
        }
    }

    public func take(
        _ key: RowKey, version: Int64, id: LeaseID, intent: [UInt8], lasting: Duration
    ) async throws(DatabaseReason) -> RowOutcome {
        let found = try await change(
            "ringback.take($1, $2, $3, $4, $5, $6)",
            [
                .bytes(key.bytes), .integer(version), .bytes(id.bytes), .bytes(intent),
                .integer(Int64(lasting / .milliseconds(1))),
            ])
        return try outcome(key, of: found)
    }

    public func append(
        _ received: SharedRow.Candidate, to key: RowKey, isFinal: Bool
    ) async throws(DatabaseReason) -> SharedRow {
        let found = try await change(
            "ringback.append($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [
                .bytes(key.bytes), .bytes(received.attempt.bytes), .integer(Int64(received.step)),
                .integer(received.epoch), .integer(received.parentVersion), .integer(received.parentVersion + 1),
                .bytes(received.sealed), .flag(isFinal),
            ])
        return try row(key, of: found)
    }

    public func release(_ key: RowKey, attempt id: LeaseID, ends: Bool) async throws(DatabaseReason) {
        _ = try await call(
            "SELECT ringback.release($1, $2, $3, $4)",
            [.integer(Schema.version), .bytes(key.bytes), .bytes(id.bytes), .flag(ends)])
    }

    public func put(
        _ sealed: [UInt8], in key: RowKey, version: Int64, lease: LeaseID?, overrides: Bool
    ) async throws(DatabaseReason) -> RowOutcome {
        let found = try await change(
            "ringback.put($1, $2, $3, $4, $5, $6)",
            [
                .bytes(key.bytes), .integer(version), .bytes(sealed), lease.map { .bytes($0.bytes) } ?? .null,
                .flag(overrides),
            ])
        return try outcome(key, of: found)
    }

    public func restore(_ sealed: [UInt8], in key: RowKey, version: Int64) async throws(DatabaseReason) -> SharedRow {
        let found = try await change(
            "ringback.restore($1, $2, $3, $4)",
            [.bytes(key.bytes), .integer(version), .bytes(sealed)])
        return try row(key, of: found)
    }

    private func row(_ key: RowKey, of parts: RowParts) throws(DatabaseReason) -> SharedRow {
        guard let row = parts.rows[key] else { throw .malformed }
        return row
    }

    private func outcome(_ key: RowKey, of parts: RowParts) throws(DatabaseReason) -> RowOutcome {
        parts.isDone == true ? .done(try row(key, of: parts)) : .refused(parts.rows[key])
    }

    private func change(_ statement: String, _ values: [PostgresValue]) async throws(DatabaseReason) -> RowParts {
        try await parts(statement, [.integer(Schema.version)] + values, within: Self.limit)
    }

    /// Calls a function that returns parts of rows. Who reads another host's row knows the server's clock, too.
    private func parts(
        _ function: String, _ values: [PostgresValue], within limit: Duration
    ) async throws(DatabaseReason) -> RowParts {
        // Nothing of the schema public is used, where everybody may be allowed to create an operator that fits better.
        let statement = """
            SELECT p.*, t.clock FROM (SELECT (extract(epoch FROM pg_catalog.clock_timestamp())
                OPERATOR(pg_catalog.*) 1000::numeric)::bigint AS clock) t
            LEFT JOIN \(function) p ON true
            """
        let begin = now?()
        let result = try await call(statement, values, within: limit)
        if let begin, let end = now?(), let row = result.rows.first, let column = row.indices.last {
            let clock = try result[0].integer(column)
            state.withLock { $0.clock.note(Int(clock), from: begin, to: end) }
        }
        // If the function returned nothing, there is the clock alone.
        let found = result.rows.filter { $0.first != .some(nil) }.map { Array($0.dropLast()) }
        let parts = try RowParts(PostgresRows(found))
        notices.remember(parts.slots)
        return parts
    }

    /// Calls a function, again if the connection was lost or the server asks for it.
    private func call(
        _ statement: String, _ values: [PostgresValue], within limit: Duration = RowDatabase.limit
    ) async throws(DatabaseReason) -> PostgresRows {
        do throws(DatabaseReason) { return try await repeated(statement, values, within: limit) } catch {
            throw error.ofRows
        }
    }

    func repeated(
        _ statement: String, _ values: [PostgresValue], within limit: Duration = RowDatabase.limit
    ) async throws(DatabaseReason) -> PostgresRows {
        let end = ContinuousClock.now + limit
        var left = 2
        while true {
            do throws(DatabaseReason) {
                return try await client.run(statement, values, within: ContinuousClock.now.duration(to: end))
            } catch {
                guard left > 0, Self.isWorthAnother(error) else { throw error }
                left -= 1
            }
        }
    }

    private static func isWorthAnother(_ failure: DatabaseReason) -> Bool {
        switch failure {
        case .closed, .notNow: true
        // A conflict with another transaction, a deadlock.
        case .refused(let state): state == "40001" || state == "40P01"
        default: false
        }
    }
}

extension RowDatabase {
    public func accept(
        as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?
    ) async throws(HostFailure) {
        let first = RowDatabase(url, password: invitation.map { secret in .given { secret } } ?? configured)
        defer { first.shutdown() }
        try await first.accept(as: name, password: password, publicKey: publicKey)
    }

    /// Accepts the invitation with which this database is connected.
    func accept(as name: String, password: Secret, publicKey: [UInt8]) async throws(HostFailure) {
        try await ask { database throws(DatabaseReason) in
            let verifier = try PostgresClient.verifier(of: password)
            _ = try await database.rows(
                "ringback.accept($1, $2, $3, $4)", [.text(verifier), .text(name), .bytes(publicKey)])
        }
    }

    public func identity() async throws(HostFailure) -> HostIdentity {
        try await ask { database throws(DatabaseReason) in
            let row = try await database.row("ringback.me($1)")
            return HostIdentity(
                ownerName: try row.text(0), owner: try row.bytes(1), name: try row.text(2),
                wrappedKey: try row.isNull(3) ? nil : row.bytes(3))
        }
    }

    public func hosts() async throws(HostFailure) -> [Host] {
        try await ask { database throws(DatabaseReason) in
            let rows = try await database.rows("ringback.list_hosts($1)")
            var hosts: [Host] = []
            for index in 0..<rows.count { hosts.append(try Host(rows[index])) }
            return hosts
        }
    }

    /// The database gets only a verifier of the password.
    public func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        let password = Invitation.newPassword()
        let role = try await ask { database throws(DatabaseReason) in
            let verifier = try PostgresClient.verifier(of: password)
            return try await database.row(
                "ringback.invite($1, $2, $3)", [.text(verifier), .integer(Int64(lasting / .seconds(1)))]
            ).text(0)
        }
        await dropRemoved(nil)
        return Invitation(role: role, password: password)
    }

    public func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool {
        try await flag("ringback.give_key($1, $2, $3)", [.text(role), .bytes(wrapped)])
    }

    /// What the host had read it still has. Its role is dropped, if that is possible now.
    public func remove(host role: String) async throws(HostFailure) -> Bool {
        guard try await flag("ringback.remove_host($1, $2)", [.text(role)]) else { return false }
        await dropRemoved(role)
        await dropRemoved(nil)
        return true
    }

    /// Drops the role of a removed host; nil: one that could not be dropped before. Tried with each change of hosts.
    private func dropRemoved(_ role: String?) async {
        _ = try? await flag("ringback.drop_removed($1, $2)", [role.map { .text($0) } ?? .null])
    }

    private func flag(_ function: String, _ values: [PostgresValue]) async throws(HostFailure) -> Bool {
        try await ask { database throws(DatabaseReason) in try await database.row(function, values).flag(0) }
    }

    private func rows(_ function: String, _ values: [PostgresValue] = []) async throws(DatabaseReason) -> PostgresRows {
        try await repeated("SELECT * FROM \(function)", [.integer(Schema.version)] + values)
    }

    private func row(_ function: String, _ values: [PostgresValue] = []) async throws(DatabaseReason) -> PostgresRow {
        let rows = try await rows(function, values)
        guard rows.count == 1 else { throw .malformed }
        return rows[0]
    }

    private func ask<Value>(
        _ body: (RowDatabase) async throws(DatabaseReason) -> Value
    ) async throws(HostFailure) -> Value {
        do throws(DatabaseReason) { return try await body(self) } catch { throw HostFailure(error) }
    }
}

extension Host {
    fileprivate init(_ row: PostgresRow) throws(DatabaseReason) {
        self.init(
            role: try row.text(0), name: try row.isNull(1) ? nil : row.text(1), isSelf: try row.flag(2),
            joined: try row.isNull(3) ? nil : row.integer(3), seen: try row.isNull(4) ? nil : row.integer(4),
            hasKey: try row.flag(5), publicKey: try row.isNull(6) ? nil : row.bytes(6))
    }
}

extension HostFailure {
    init(_ failure: DatabaseReason) {
        guard case .refused(let state) = failure else {
            self = .database(failure.ofRows)
            return
        }
        switch state {
        case "RB002": self = .noHost
        case "RB003": self = .notJoined
        case "RB005": self = .invitationUsed
        case "RB006": self = .tooManyHosts
        case "23505": self = .nameTaken
        default: self = .database(failure.ofRows)
        }
    }
}

final class RowChanges: Sendable {
    struct Pulse: Sendable, Equatable {
        /// One of them is another after any change.
        var numbers: [[UInt8]?]
        var untold: [UInt8]?
    }

    private struct State {
        var listeners: [Int: AsyncStream<RowKey?>.Continuation] = [:]
        var next = 0
        var slots: [String: RowKey] = [:]
        var pulse: Pulse?
        var isListening = false
        /// Since when there is a connection for changes; nil without one.
        var connectedAt: ContinuousClock.Instant?
        /// True if a notification came since the question.
        var wasNotified = false
    }

    private let state = Mutex(State())
    var connectedAt: ContinuousClock.Instant? { state.withLock { $0.connectedAt } }

    /// A new listener, from now on. If it falls behind, or the connection was made before, it gets "everything".
    func listen() -> AsyncStream<RowKey?> {
        let (stream, continuation) = AsyncStream<RowKey?>.makeStream(bufferingPolicy: .bufferingNewest(1_024))
        let number = state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = continuation
            if state.connectedAt != nil { continuation.yield(nil) }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[number] = nil }
        }
        return stream
    }

    func remember(_ slots: [String: RowKey]) { state.withLock { $0.slots.merge(slots) { $1 } } }

    func noteConnection(listens: Bool) {
        state.withLock { state in
            (state.isListening, state.connectedAt) = (listens, .now)
            state.pulse = nil
            state.wasNotified = false
        }
        tell(nil)
    }

    /// There is no connection for changes. The nil shows a host without other queries whether the database is away.
    func noteLoss() {
        state.withLock { $0.connectedAt = nil }
        tell(nil)
    }

    /// A notification: a row's slot, or something that is not known. Then everything may have changed.
    func noteNotification(_ payload: String) {
        let key = state.withLock { state in
            state.wasNotified = true
            return state.slots[payload]
        }
        tell(key)
    }

    func note(_ pulse: Pulse) {
        let isChanged = state.withLock { state in
            defer {
                state.pulse = pulse
                state.wasNotified = false
            }
            guard let last = state.pulse, last != pulse else { return false }
            return last.untold != pulse.untold || !(state.isListening && state.wasNotified)
        }
        if isChanged { tell(nil) }
    }

    func finish() {
        let listeners = state.withLock { state in
            defer { state.listeners = [:] }
            return state.listeners.values
        }
        for listener in listeners { listener.finish() }
    }

    private func tell(_ key: RowKey?) {
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners {
            if case .dropped = listener.yield(key) { listener.yield(nil) }
        }
    }
}

extension DatabaseReason {
    /// What a refused statement means for the rows.
    var ofRows: DatabaseReason {
        guard case .refused(let state) = self else { return self }
        return switch state {
        // No schema, no function, no table.
        case "3F000", "42883", "42P01": .noSchema
        // No right; no host (any more); a host that has not joined yet.
        case "42501", "RB002", "RB003": .notPermitted
        case "53100": .noRoom
        // The server ended a wait for a lock, or the statement: it has had no effect.
        case "55P03", "57014": .timedOut
        default: self
        }
    }
}

/// The server's clock, against this machine's time since boot.
struct ServerClock: Sendable {
    /// What it showed when this machine was booted, in milliseconds since 1970; nil if it is not known.
    private(set) var boot: Int?
    private var readAt: Duration = .zero
    /// How long the reading took: nobody knows when in that time it was made.
    private var span: Duration?
    /// After that time any other reading is better: either clock may run too fast, or may have been set.
    private static let interval: Duration = .seconds(600)

    /// There is another connection, perhaps to another server: any other reading is better.
    mutating func readAgain() { span = nil }

    /// `milliseconds` since 1970 by the server's clock; `begin` and `end`: times since boot, before and after.
    mutating func note(_ milliseconds: Int, from begin: Duration, to end: Duration) {
        let isBetter = span.map { end - begin <= $0 || end - readAt >= ServerClock.interval } ?? true
        guard isBetter, (0..<1 << 50).contains(milliseconds) else { return }
        boot = milliseconds - Int((begin + end) / 2 / .milliseconds(1))
        (span, readAt) = (end - begin, end)
    }
}
