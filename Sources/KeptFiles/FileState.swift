internal import BrokerCore

/// What is known of one kept file in this run of the daemon.
struct FileState {
    let file: KeptFile
    /// What may be at the path and is ours.
    var known: Set<[UInt8]> = []
    /// What was written last, or found after a start; nil if there is no file of ours.
    var expiry: Deadline?
    var isWritten = false
    /// When the `ttl` began.
    var beganAt: WallInstant?
    var state = KeptFileView.State.waiting
    var detail: Reason?
    /// When the session is asked again.
    var due: BootInstant
    /// Rises when the session is closed, replaced or hidden: a token that was asked for before is not written.
    var generation = 0
    /// Rises with everything that is a reason to ask again.
    var wakes = 0
    var isAsking = false
    /// How often in a row nothing better was got.
    var failures = 0

    /// How often each file is looked at, so that one that was removed by something is written again.
    static let interval: Duration = .seconds(30)
    private static let pauses: [Duration] = [.seconds(15), .seconds(30), .seconds(60), .seconds(300), .seconds(600)]

    init(_ file: KeptFile, due: BootInstant) {
        self.file = file
        self.due = due
    }

    mutating func wake(at now: BootInstant) {
        wakes += 1
        due = now
    }

    /// When to ask again after a failure: later each time, but no later than the token's end.
    mutating func postpone(at now: BootInstant) {
        let pause = FileState.pauses[min(failures, FileState.pauses.count - 1)]
        failures += 1
        due = now + pause
        if let end = expiry?.boot, isWritten, end > now { due = min(due, end) }
    }

    /// When to ask again for a token that is in the file: as soon as less than ``KeptFile/margin`` of its life is left. The
    /// request then causes a refresh.
    mutating func plan(_ token: AccessToken, isNew: Bool, at now: BootInstant) {
        let remaining = token.remaining(at: now)
        let lifetime = token.lifetime ?? remaining ?? .zero
        let margin = lifetime <= KeptFile.margin * 2 ? lifetime / 2 : KeptFile.margin
        guard let remaining, !isNew, remaining < margin else {
            failures = 0
            due = now + FileState.interval
            if let remaining { due = min(due, now + max(remaining - margin + .seconds(1), .seconds(1))) }
            return
        }
        // The provider has renewed nothing.
        postpone(at: now)
    }

    /// What the record in the state directory says of it.
    func entry(by clock: BrokerClock) -> FileEntry? {
        guard isWritten || beganAt != nil || !known.isEmpty else { return nil }
        return FileEntry(digests: known, expiresAt: expiry?.wall(by: clock).seconds, beganAt: beganAt?.seconds)
    }

    /// Removes the file, if it is ours. Changes the state to a new one.
    ///
    /// What something else has written stays, and so does a file that cannot be removed: the detail says so, and the next
    /// turn tries again.
    mutating func remove(becoming state: KeptFileView.State, at now: BootInstant) {
        self.state = state
        detail = nil
        due = now + FileState.interval
        guard !known.isEmpty else { return }
        do throws(FileReason) {
            if case .foreign(let reason) = try FilePlace(file.path).remove(known) {
                self.state = .problem
                detail = .file(reason)
            }
            known = []
            isWritten = false
            expiry = nil
        } catch {
            self.state = .problem
            detail = .file(error)
        }
    }

    func view(by clock: BrokerClock) -> KeptFileView {
        KeptFileView(
            file: file, state: state, detail: detail,
            expiresAt: isWritten ? expiry.map { $0.wall(by: clock) } : nil)
    }

    /// The session has ended or is hidden: the file goes, and so does what was asked for before.
    mutating func end(becoming state: KeptFileView.State, at now: BootInstant, keepsBeginning: Bool = false) {
        generation += 1
        failures = 0
        if !keepsBeginning, state == .signedOut { beganAt = nil }
        remove(becoming: state, at: now)
    }

    /// There is no new token, or it cannot be written. The old one stays until its end.
    mutating func fail(_ reason: Reason, at now: BootInstant) {
        let hasEnded = expiry.map { $0.remaining(at: now) == .zero } ?? false
        if hasEnded { remove(becoming: .problem, at: now) }
        state = isWritten ? .kept : .problem
        detail = reason
        postpone(at: now)
    }
}
