public import RingbackBase
internal import SessionVault
internal import Synchronization

/// A slot's name in the database: 32 bytes, derived with the hosts' data key, so that the database learns nothing.
public struct RowKey: Hashable, Sendable {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// 16 random bytes.
public struct LeaseID: Hashable, Sendable {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// What the database holds for one slot of one owner.
public struct SharedRow: Sendable, Equatable {
    /// The right of one host to send a request for the row.
    public struct Lease: Sendable, Equatable {
        public var id: LeaseID
        public var host: String
        /// By the database's clock, when the row was read.
        public var left: Duration

        public init(id: LeaseID, host: String, left: Duration) {
            self.id = id
            self.host = host
            self.left = left
        }
    }

    public struct Attempt: Sendable, Equatable {
        public var id: LeaseID
        public var host: String
        public var parentVersion: Int64
        public var intent: [UInt8]
        /// How long ago it began.
        public var age: Duration

        public init(id: LeaseID, host: String, parentVersion: Int64, intent: [UInt8], age: Duration) {
            self.id = id
            self.host = host
            self.parentVersion = parentVersion
            self.intent = intent
            self.age = age
        }
    }

    public struct Candidate: Sendable, Equatable {
        public var attempt: LeaseID
        public var step: Int
        public var parentVersion: Int64
        public var epoch: Int64
        public var sealed: [UInt8]

        public init(attempt: LeaseID, step: Int, parentVersion: Int64, epoch: Int64, sealed: [UInt8]) {
            self.attempt = attempt
            self.step = step
            self.parentVersion = parentVersion
            self.epoch = epoch
            self.sealed = sealed
        }
    }

    public var key: RowKey
    /// The first is 1; each change of the head adds 1.
    public var version: Int64
    public var epoch: Int64
    /// The sealed content. Also a removed slot has content: a sealed record that says so.
    public var sealed: [UInt8]
    /// Nil if no host holds the row, or its lease is over.
    public var lease: Lease?
    /// Attempts whose outcome nobody has reported, newest first, of the last hour or of the last versions.
    public var openAttempts: [Attempt] = []
    /// What was received and never became a head's ancestor, newest first.
    public var candidates: [Candidate] = []

    public init(key: RowKey, version: Int64, epoch: Int64, sealed: [UInt8]) {
        self.key = key
        self.version = version
        self.epoch = epoch
        self.sealed = sealed
    }
}

public enum RowOutcome: Sendable, Equatable {
    case done(SharedRow)
    /// The row as it is now; nil if there is none.
    case refused(SharedRow?)
}

/// The rows of one owner, which several hosts share.
public protocol SharedRows: Sendable {
    /// The rows of these keys. A missing one was never written.
    func read(_ keys: [RowKey]) async throws(DatabaseReason) -> [RowKey: SharedRow]

    /// One statement, synchronously committed: makes this host the holder for the time `lasting` if `version` is the
    /// row's and no other lease lasts. Inserts the attempt.
    func take(
        _ key: RowKey, version: Int64, id: LeaseID, intent: [UInt8], lasting: Duration
    ) async throws(DatabaseReason) -> RowOutcome

    /// Appends what was received in an attempt. Always accepted, once for each step (again: no change), even if the lease
    /// is over. The head moves to it, as the version after the parent's, if the lease is still this one's and the head is
    /// still of the parent's version. The attempt is closed. `isFinal`: the lease ends too. In the same transaction the
    /// other hosts are notified. Returns the row.
    func append(
        _ received: SharedRow.Candidate, to key: RowKey, isFinal: Bool
    ) async throws(DatabaseReason) -> SharedRow

    /// Ends the lease. `ends`: the attempt ends too, since nothing was received (not sent, or an error response that proves
    /// that nothing changed). Else it stays open: a request was sent and its outcome is unknown.
    func release(_ key: RowKey, attempt id: LeaseID, ends: Bool) async throws(DatabaseReason)

    /// Writes without a request to a provider: the head becomes `sealed` with version `version + 1` if the row's version
    /// is `version` (0: the row must not exist) and (`overrides` or no other host's lease lasts). Overriding ends every
    /// lease, attempt and candidate of the row.
    func put(
        _ sealed: [UInt8], in key: RowKey, version: Int64, lease: LeaseID?, overrides: Bool
    ) async throws(DatabaseReason) -> RowOutcome

    /// After a failover: puts back a newer content of this host, over a lower version or none. Returns the row.
    func restore(_ sealed: [UInt8], in key: RowKey, version: Int64) async throws(DatabaseReason) -> SharedRow

    /// All rows that changed, as hints. Nil means that everything is to be looked at again: when the connection is lost,
    /// at every reconnect, and every few seconds where LISTEN does not work.
    var changes: AsyncStream<RowKey?> { get }
    /// What the last connections showed of the server.
    var facts: RowFacts { get }
}

/// What is known of a server with rows; nil before the first connection.
public struct RowFacts: Sendable, Equatable {
    /// Changes are told at once. False where a pooler is between: then they are noticed after some seconds.
    public var listens: Bool?
    public var hasSynchronousStandby: Bool?
    /// What the server's clock showed when this machine was booted, in milliseconds since 1970.
    public var clock: Int?

    public init() {}
}

/// Rows of which a change was told, until they are looked at: each once, however often that was told.
final class RowNews: Sendable {
    private struct Told: Sendable {
        var keys: Set<RowKey> = []
        /// Any row may have changed.
        var isAll = false
    }

    private let told = Mutex(Told())
    private let signal = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    func note(_ key: RowKey?) {
        told.withLock { told in
            if let key { told.keys.insert(key) } else { told.isAll = true }
        }
        signal.continuation.yield()
    }

    /// Waits for news. Nil stands for any row. Returns nil when there will be none. To be called by one task.
    func next() async -> [RowKey?]? {
        var signals = signal.stream.makeAsyncIterator()
        guard await signals.next() != nil else { return nil }
        let found = told.withLock { told in
            defer { told = Told() }
            return told
        }
        return found.isAll ? [nil] : Array(found.keys)
    }

    func finish() { signal.continuation.finish() }
}

extension SharedRow {
    /// How long the outcome of another host's attempt is waited for; nil if there is none to wait for. An attempt of
    /// this host is of an earlier life of it, which has lost the response. `id` is the attempt that is being made;
    /// `edits` versions before the head had the same tokens.
    func wait(for id: LeaseID, of host: String, edits: Int64, accessTokenLeft: Duration?) -> Duration? {
        let longest = SharedVault.attemptWait
        let waits = openAttempts.filter { $0.id != id && $0.host != host && $0.parentVersion >= version - edits }
            .map { min(accessTokenLeft ?? longest, longest - $0.age) }
        return waits.max().flatMap { $0 > .zero ? $0 : nil }
    }

    /// The candidates that this host has not been given, newer or older than the head's tokens. Throws `unreachable`.
    func candidates(
        besides entry: SpoolEntry?, opened sealing: RowSealing
    ) throws(VaultError) -> (newer: [RowContent], older: [RowContent]) {
        let edits = Int64(entry?.content.edits ?? 0)
        var known = Set(entry.map { [$0.content.name] + $0.content.ancestors } ?? [])
        var (newer, older): ([RowContent], [RowContent]) = ([], [])
        for candidate in candidates {
            guard let content = try sealing.open(candidate.sealed, as: key, version: candidate.parentVersion + 1),
                known.insert(content.name).inserted
            else { continue }
            if candidate.parentVersion >= version - edits { newer.append(content) } else { older.append(content) }
        }
        return (newer, older)
    }

    /// The contents with which a session went on after this one.
    func received(after former: RowContent, opened sealing: RowSealing) -> [RowContent] {
        let head = (try? sealing.open(sealed, as: key, version: version)) ?? nil
        let rest = (try? candidates(besides: nil, opened: sealing)).map { $0.newer + $0.older } ?? []
        return ([head].compactMap { $0 } + rest).filter { $0.continues(former) }
    }

    func has(_ content: RowContent, opened sealing: RowSealing) -> Bool {
        candidates.contains { candidate in
            let found = try? sealing.open(candidate.sealed, as: key, version: candidate.parentVersion + 1)
            return found?.name == content.name
        }
    }
}

extension SlotState {
    /// Nil unless every token of the row was tried: another host may have changed it, or received what was not tried.
    func proofOfEnd(_ row: SharedRow?, of host: String, opened sealing: RowSealing) -> EndProof? {
        // A row that is gone had what other hosts received. It is put back first.
        guard let row else { return rowVersion == 0 ? EndProof() : nil }
        guard row.version == rowVersion else { return nil }
        let tried = offered.union(entry.map { [$0.content.name] + $0.content.ancestors } ?? [])
        for candidate in row.candidates {
            let content = try? sealing.open(candidate.sealed, as: key, version: candidate.parentVersion + 1)
            if let name = content?.name, !tried.contains(name) { return nil }
        }
        let unheard = row.openAttempts.filter { $0.id != attempt?.id }
        guard !unheard.contains(where: { $0.host != host && $0.age < SharedVault.attemptDoubt }) else { return nil }
        // What began before the tokens of the head came explains nothing.
        let last = unheard.filter { $0.parentVersion >= row.version - edits }.min { $0.age < $1.age }
        return EndProof(unheard: last.map { EndProof.UnheardRequest(host: $0.host, age: $0.age) })
    }
}
