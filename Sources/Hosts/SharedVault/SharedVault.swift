public import RingbackBase
public import SessionVault
internal import Synchronization

// The vault that several hosts share. A refresh is sent by one host at a time, and no token that a host received is ever
// lost. Both depend on this order:
//
// 1. Room for the response is reserved in the local vault.
// 2. The row is taken: one statement gives this host the lease, and leaves a mark that a request may be sent (attempt).
// 3. Right before each request, at least half a minute of the lease is left, by the time since boot from before step 2.
// 4. The response is stored in the local vault.
// 5. It is appended to the row, whose head it becomes if the lease is still this host's. If the database is away, that is
//    done later; whatever was not appended yet is appended before anything else is asked of the row. The response is
//    stored twice, before and after it is validated. If the second follows soon, only that is appended.
// 6. It is served.
//
// Sessions, client registrations and the record of removed hosts are shared. Everything else is in the local vault alone,
// and so are sessions that have ended here and whose providers have not been told.
public actor SharedVault: Vault {
    enum Refusal: Sendable, Equatable {
        case unreadable
        /// The head is of a lower version than one that was seen, whose content this host does not have.
        case older
    }

    static let lease: Duration = .seconds(60)
    /// What must be left of the lease when a request is sent.
    static let leastLeft: Duration = .seconds(30)
    static let longestRequest: Duration = .seconds(20)
    /// How long after its begin an attempt of another host is waited for, if the access token does not end before.
    static let attemptWait: Duration = .seconds(600)
    /// How long a response that is stored here is held back from the database, for what follows its validation.
    static let validation: Duration = .milliseconds(100)
    /// An attempt of another host that began this recently may have received a token.
    static let attemptDoubt: Duration = .seconds(3_600)
    let local: any Vault
    let rows: any SharedRows
    let hosts: any SharedHosts
    let place: DatabasePlace
    /// The time since boot, suspended time included.
    let now: @Sendable () -> Duration
    let random: @Sendable (Int) -> [UInt8]
    /// Of this host, for another host of the same owner. Nil while the vault is locked.
    public internal(set) var membership: Membership?
    var sealing: RowSealing?
    var slots = SlotTable()
    var names: [RowKey: VaultSlot] = [:]
    /// How often changes have been looked at.
    var looks = 0
    var outage = Outage()
    let shown: Mutex<Shown>
    private let tell: @Sendable (DatabaseTurn) -> Void
    /// Attempts that have ended without a response, and whose end the database does not know.
    var settling: [(id: LeaseID, key: RowKey)] = []
    /// Slots that nobody may ask for soon, and whose content the database may not have.
    var unread: Set<VaultSlot> = []
    /// Slots of sessions that are not loaded yet, and whose content the database may not have.
    var unloaded: Set<VaultSlot> = []
    let removalSlot: VaultSlot
    /// The record, by the name of its content.
    var removalsRead: (name: RowContent.Name, record: RemovalRecord)?
    var hasKeptMore = false
    let turns = SlotTurns()
    let othersChanges = AsyncStream.makeStream(of: VaultSlot?.self)
    /// Something is to be sent.
    let wakes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// A removal may have been begun, or a session may be stale.
    let removalNews = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// The vault may be opened now: this host may have been given the key.
    private let openings = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// `local` is used by nobody else. `tell` is told when the database goes away and is back, and must not block.
    public init(
        local: any Vault, rows: any SharedRows, hosts: any SharedHosts, place: DatabasePlace,
        now: @escaping @Sendable () -> Duration, random: @escaping @Sendable (Int) -> [UInt8],
        tell: @escaping @Sendable (DatabaseTurn) -> Void = { _ in }
    ) {
        self.local = local
        self.rows = rows
        self.hosts = hosts
        self.place = place
        self.now = now
        self.random = random
        self.tell = tell
        removalSlot = VaultSlot(account: "removals", binding: place.binding, kind: .hostsKey)
        shown = Mutex(Shown(database: VaultDatabase(place: place.shown)))
    }

    nonisolated var joining: Joining { Joining(local: local, hosts: hosts, place: place, random: random) }
    var host: String { membership?.host ?? "" }

    public func close() async throws(VaultError) {
        try await local.close()
        (membership, sealing) = (nil, nil)
        hosts.use(nil)
        showLock(.locked(.locked))
        // The local vault has everything that the database does not have, if it could be written.
        slots.forgetWritten()
        (unread, unloaded) = ([], [])
    }

    public func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {
        try await local.rekey(to: choice, passphrase: passphrase)
    }

    public nonisolated var status: VaultStatus {
        var status = local.status
        shown.withLock { $0 }.show(in: &status, rows.facts, at: now())
        return status
    }

    func showLock(_ lock: VaultError?) { shown.withLock { $0.lock = lock } }

    /// Yields when an attempt to open the vault may succeed that has failed before.
    public nonisolated var mayOpen: AsyncStream<Void> { openings.stream }
    func askToOpen() { openings.continuation.yield() }
    public nonisolated var changes: AsyncStream<VaultSlot?> { othersChanges.stream }

    /// Whatever is done with a slot is done one after another.
    func inTurn<Value, Failure: Error>(
        _ slot: VaultSlot, _ body: (isolated SharedVault) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        await turns.begin(slot)
        defer { turns.end(slot) }
        return try await body(self)
    }

    /// Asks the database. While it is known to be away it is asked only now and then.
    func ask<Value: Sendable>(
        isRead: Bool = false, _ body: @Sendable (any SharedRows) async throws(DatabaseReason) -> Value
    ) async throws(VaultError) -> Value {
        if let reason = outage.refusal(at: now()) { throw .unreachable(.databaseAway(reason)) }
        do throws(DatabaseReason) {
            let value = try await body(rows)
            // A server that can be read may take no changes. The next one tells.
            if !isRead || !outage.isOfChanges || slots.unsent.isEmpty { outage.ended() }
            show()
            return value
        } catch {
            outage.note(error, isRead: isRead, at: now())
            if outage.reason != nil { wakes.continuation.yield() }
            show()
            throw VaultError(error)
        }
    }

    func read(_ keys: [RowKey]) async throws(VaultError) -> [RowKey: SharedRow] {
        try await ask(isRead: true) { rows throws(DatabaseReason) in try await rows.read(keys) }
    }

    func show() {
        let unsent = slots.unsent.count + unread.count + unloaded.count
        if let turn = shown.withLock({ $0.note(outage, unsent: unsent, at: now()) }) { tell(turn) }
    }

    func isShared(_ slot: VaultSlot) -> Bool {
        slot.kind == .session || slot.kind == .registration || slot == removalSlot
    }

    /// What is known of a slot; the local vault is read if nothing is.
    func state(of slot: VaultSlot) async throws(VaultError) -> SlotState {
        if let state = slots[slot] { return state }
        return try note(try await local.load(slot)?.text, in: slot)
    }

    func note(_ text: Secret?, in slot: VaultSlot) throws(VaultError) -> SlotState {
        if let state = slots[slot] { return state }
        let state = SlotState(key: try opened().key(of: slot), stored: text, name: random(RowContent.nameLength))
        slots[slot] = state
        names[state.key] = slot
        if unloaded.remove(slot) != nil, unloaded.isEmpty { show() }
        if state.entry?.isSent == false { wakes.continuation.yield() }
        return state
    }

    func opened() throws(VaultError) -> RowSealing {
        guard let sealing else {
            let status = status
            throw .locked(status.reason ?? .locked, obstacle: status.obstacle)
        }
        return sealing
    }
}

/// The slots that are known. Those for which there is something to do are found without looking at all.
struct SlotTable: Sendable {
    /// How long the database is left alone after an attempt to send something, if there is nothing else to do.
    private static let leastPause: Duration = .seconds(1)
    private var states: [VaultSlot: SlotState] = [:]
    private(set) var unsent: Set<VaultSlot> = []
    private(set) var uncopied: Set<VaultSlot> = []
    private(set) var overlooked: Set<VaultSlot> = []
    var all: [VaultSlot] { Array(states.keys) }

    subscript(slot: VaultSlot) -> SlotState? {
        get { states[slot] }
        set {
            states[slot] = newValue
            SlotTable.mark(slot, newValue?.entry?.isSent == false, in: &unsent)
            SlotTable.mark(slot, newValue?.isUncopied == true, in: &uncopied)
            SlotTable.mark(slot, newValue?.isOverlooked == true, in: &overlooked)
        }
    }

    /// Forgets all but those that the local vault could not be given. What was not copied yet is in the database.
    mutating func forgetWritten() { for (slot, state) in states where !state.isUnwritten { self[slot] = nil } }

    /// The wait before something is done for them; nil for nothing. `isSettling`: ends of attempts are to be told.
    func pause(isSettling: Bool, outage: Outage, at now: Duration) -> Duration? {
        if uncopied.contains(where: { self[$0]?.isBusy(at: now) == false }) { return .zero }
        guard isSettling || !unsent.isEmpty || outage.reason != nil else {
            let copied = uncopied.compactMap { self[$0]?.attempt?.end }
            let end = (overlooked.compactMap { self[$0]?.overlookedUntil } + copied).min()
            return end.map { max($0 - now, SlotTable.leastPause) }
        }
        let held = unsent.compactMap { self[$0]?.heldUntil }.filter { $0 > now }
        if !isSettling, held.count == unsent.count, let first = held.min() { return first - now }
        return outage.reason == nil ? SlotTable.leastPause : outage.pause(at: now)
    }

    private static func mark(_ slot: VaultSlot, _ isMarked: Bool, in set: inout Set<VaultSlot>) {
        if isMarked { set.insert(slot) } else { set.remove(slot) }
    }
}

/// Who is next at each slot. For the vault's actor alone.
final class SlotTurns {
    private var waiting: [VaultSlot: [CheckedContinuation<Void, Never>]] = [:]

    func begin(_ slot: VaultSlot, isolation: isolated (any Actor)? = #isolation) async {
        guard waiting[slot] != nil else {
            waiting[slot] = []
            return
        }
        await withCheckedContinuation { waiting[slot]?.append($0) }
    }

    func isTaken(_ slot: VaultSlot) -> Bool { waiting[slot] != nil }

    func end(_ slot: VaultSlot) {
        if let next = waiting[slot]?.first {
            waiting[slot]?.removeFirst()
            next.resume()
        } else {
            waiting[slot] = nil
        }
    }
}

struct Maintenance: Sendable {
    let wakes: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

    /// - Parameter maintain: returns how long to wait for the next time; nil: until it is woken.
    func run(_ maintain: @Sendable () async -> Duration?) async {
        var timer: Task<Void, Never>?
        var news = wakes.stream.makeAsyncIterator()
        while !Task.isCancelled {
            timer?.cancel()
            timer = await maintain().map { [wakes] pause in
                Task { if (try? await Task.sleep(for: pause)) != nil { wakes.continuation.yield() } }
            }
            // News end a pause.
            if await news.next() == nil { break }
        }
        timer?.cancel()
    }
}

struct Shown: Sendable {
    var database: VaultDatabase
    /// This host's name among those that share the vault, also while the vault is locked.
    var host: String?
    var awaySince: Duration?
    /// Why the rows cannot be used; nil if they can.
    var lock: VaultError? = .locked(.notOpened)

    mutating func note(_ outage: Outage, unsent: Int, at now: Duration) -> DatabaseTurn? {
        let former = awaySince
        awaySince = outage.since
        (database.problem, database.unsent) = (outage.reason, unsent)
        if let problem = outage.reason, former == nil { return .away(problem) }
        return outage.since == nil ? former.map { .returned(after: max(now - $0, .zero)) } : nil
    }

    func show(in status: inout VaultStatus, _ facts: RowFacts, at now: Duration) {
        status.database = database
        status.database?.listens = facts.listens
        status.database?.hasSynchronousStandby = facts.hasSynchronousStandby
        status.database?.away = awaySince.map { max(now - $0, .zero) }
        guard !status.isLocked, let lock else { return }
        status.isLocked = true
        status.reason = lock.cause?.reason
        status.obstacle = lock.cause?.obstacle
    }
}

struct Outage: Sendable {
    /// Why it could not be reached at the last attempt.
    private(set) var reason: DatabaseReason?
    private(set) var since: Duration?
    /// A change failed.
    private(set) var isOfChanges = false
    private var retryAt: Duration = .zero
    private var failures = 0
    /// Until when sessions are loaded without their rows.
    private var loadsAt: Duration = .zero
    private static let longestPause: Duration = .seconds(15)
    private static let pauseOfLoading: Duration = .seconds(5)

    /// Why it is not asked now; nil if it may be.
    func refusal(at now: Duration) -> DatabaseReason? { now < retryAt ? reason : nil }

    mutating func note(_ error: DatabaseReason, isRead: Bool, at now: Duration) {
        // The caller is gone, or there is too much to do here.
        if error == .cancelled || error == .busy { return }
        reason = error
        if since == nil { since = now }
        if !isRead { isOfChanges = true }
        // What was asked at the same time, and fails too, makes the pause no longer.
        guard now >= retryAt else { return }
        failures = min(failures + 1, 8)
        retryAt = now + min(.milliseconds(250 << (failures - 1)), Outage.longestPause)
    }

    mutating func ended() { self = Outage() }
    mutating func tryNow() { (retryAt, loadsAt) = (.zero, .zero) }

    mutating func noteLoading(at now: Duration) { loadsAt = now + Outage.pauseOfLoading }

    /// True for five seconds after that.
    func delaysLoading(at now: Duration) -> Bool { now < loadsAt }

    func pause(at now: Duration) -> Duration { max(retryAt - now, .milliseconds(250)) }
}

extension VaultError {
    init(_ reason: DatabaseReason) {
        self = .unreachable(reason.isRefusal ? .databaseRefused(reason) : .databaseAway(reason))
    }
}
