internal import Synchronization

/// The count of one use by one caller. A connection that repeats the use keeps it, so that a repetition takes one lock
/// and no look-up.
public final class CountedUse: Sendable {
    let caller: AuditCaller
    let use: AuditUse
    /// Nil after the count was handed over for writing. The next use begins a new count.
    private let tally: Mutex<Tally?>

    init(_ caller: AuditCaller, _ use: AuditUse, at now: Int) {
        self.caller = caller
        self.use = use
        tally = Mutex(Tally(count: 1, first: now, last: now))
    }

    /// Counts a repetition. `now` is in Unix seconds.
    ///
    /// - Returns: false if this count has been taken; then nothing is counted, and ``AuditLog/note(_:_:at:)`` is to be
    ///   called.
    public func add(at now: Int) -> Bool {
        tally.withLock { tally in
            tally?.add(at: now)
            return tally != nil
        }
    }

    /// What was counted and not subtracted yet.
    var row: IssuedTokenLedger.Row? {
        tally.withLock { $0 }.map { IssuedTokenLedger.Row(caller: caller, use: use, tally: $0) }
    }

    func subtract(_ count: Int) {
        tally.withLock { tally in
            guard tally != nil else { return }
            tally?.count -= count
        }
    }

    /// Ends this count.
    func take() -> IssuedTokenLedger.Row? {
        let last = tally.withLock { tally in
            defer { tally = nil }
            return tally
        }
        guard let last, last.count > 0 else { return nil }
        return IssuedTokenLedger.Row(caller: caller, use: use, tally: last)
    }
}
