internal import BrokerCore

/// The state of one kept file. It is not stored across restarts.
struct FileState {
    let file: KeptFile
    /// The digests of the contents that Ringback may have written to the path.
    var known: Set<[UInt8]> = []
    /// When the file's content expires; nil if there is no file of ours, or if the token has no stated lifetime.
    var expiry: Deadline?
    var isWritten = false
    /// When the `ttl` began.
    var beganAt: WallInstant?
    var state = KeptFileView.State.waiting
    var detail: Reason?
    /// When the next token is requested.
    var due: BootInstant
    /// Increased when the session is closed, replaced or hidden. A token that was requested before is not written.
    var generation = 0
    /// Increased whenever a token should be requested again.
    var wakes = 0
    var isAsking = false
    /// The number of consecutive requests that failed or returned no newer token.
    var failures = 0

    /// The interval between checks of each file. A file that another program removed is then written again.
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

    /// Schedules the next request after a failure: with a growing pause, but no later than the token expires.
    mutating func postpone(at now: BootInstant) {
        let pause = FileState.pauses[min(failures, FileState.pauses.count - 1)]
        failures += 1
        due = now + pause
        if let end = expiry?.boot, isWritten, end > now { due = min(due, end) }
    }

    /// Schedules the next request while a token is in the file: when less than ``KeptFile/margin`` of its lifetime is
    /// left. That request causes a refresh.
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
        // The token is about to expire and the provider returned no newer one.
        postpone(at: now)
    }

    /// The file's entry for the record in the state directory; nil if it needs none.
    func entry(by clock: BrokerClock) -> FileEntry? {
        guard isWritten || beganAt != nil || !known.isEmpty else { return nil }
        return FileEntry(digests: known, expiresAt: expiry?.wall(by: clock).seconds, beganAt: beganAt?.seconds)
    }

    /// Removes the file if it is ours, and sets the state.
    ///
    /// A file that another program wrote is not removed. In that case, and if the removal fails, the state is `problem`
    /// and ``detail`` has the reason. A failed removal is tried again.
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

    /// The session has ended or is hidden: removes the file. The result of a pending request is ignored.
    mutating func end(becoming state: KeptFileView.State, at now: BootInstant, keepsBeginning: Bool = false) {
        generation += 1
        failures = 0
        if !keepsBeginning, state == .signedOut { beganAt = nil }
        remove(becoming: state, at: now)
    }

    /// There is no new token, or it cannot be written. The old one stays in the file until it expires.
    mutating func fail(_ reason: Reason, at now: BootInstant) {
        let hasEnded = expiry.map { $0.remaining(at: now) == .zero } ?? false
        if hasEnded {
            remove(becoming: .problem, at: now)
            // A removal that failed has a reason of its own.
            detail = detail ?? reason
        } else {
            state = isWritten ? .kept : .problem
            detail = reason
        }
        postpone(at: now)
    }
}
