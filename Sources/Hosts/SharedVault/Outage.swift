internal import RingbackBase
internal import SessionVault

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
        switch lock {
        case .locked(let reason, let obstacle), .refused(let reason, let obstacle):
            (status.reason, status.obstacle) = (reason, obstacle)
        case .unwritable(let reason), .damaged(let reason), .newer(let reason), .unreachable(let reason):
            status.reason = reason
        case .wrongPassphrase: break
        }
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
