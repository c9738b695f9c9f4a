internal import SessionVault

/// What the book does without being asked.
enum ScheduledTask: Hashable, Sendable {
    case refresh(AccountName)
    /// Write what the vault would not take before.
    case save(AccountName)
    /// Ask the vault again for what it would not tell.
    case load(AccountName)
    /// The session ends in so many seconds.
    case warn(AccountName, seconds: Int)
    case openVault
}

/// Refreshes before expiry, and everything else that nobody asks for. Judged by the time since boot, looked at again at
/// least every 30 seconds: timers do not count the time that a laptop sleeps, and nothing here depends on the wall clock.
extension SessionManager {
    /// The longest sleep.
    static let longestSleep: Duration = .seconds(30)
    /// After a night's sleep every session is due at once: one provider gets this many requests at a time.
    private static let errandsPerProvider = 16
    /// Seconds.
    private static let shortestLifetime = 2
    /// What could not be saved is tried again after this long.
    static let saveRetryInterval: Duration = .seconds(5)

    // MARK: Planning

    /// How long before its expiry a token with this lifetime is refreshed. Both are seconds, as stated by the provider
    /// and by the configuration.
    static func margin(lifetime: Int, configured: Int?) -> Duration {
        let lifetime = Duration.seconds(lifetime)
        let usual = configured.map { .seconds($0) } ?? min(.seconds(300), lifetime / 5)
        // A margin as long as the lifetime would refresh without end.
        return min(usual, lifetime / 2)
    }

    /// Puts the account's errands where they now belong.
    func schedule(_ name: AccountName) {
        guard lockError == nil, let lane = lanes[name], lane.closings == 0, let session = lane.session else {
            return unschedule(name)
        }
        if let due = refreshInstant(lane, session) {
            note(.refresh(name), at: due)
        } else {
            scheduler.remove(.refresh(name))
        }
        if lane.isUnsaved, scheduler[.save(name)] == nil {
            note(.save(name), at: clock.bootInstant + SessionManager.saveRetryInterval)
        }
        scheduleWarnings(name, lane.account.sessionWarnings, session.end)
    }

    /// What is past has been said, unless it is still on the agenda: then it fell due in a laptop's sleep or since the
    /// agenda was looked at last.
    private func scheduleWarnings(_ name: AccountName, _ warnings: [Int], _ end: Deadline?) {
        let now = clock.bootInstant
        for seconds in warnings {
            let errand = ScheduledTask.warn(name, seconds: seconds)
            guard let end, end.boot > now else {
                scheduler.remove(errand)
                continue
            }
            let due = end.boot - .seconds(seconds)
            if due > now || scheduler[errand] != nil { note(errand, at: due) }
        }
    }

    private func refreshInstant(_ lane: Lane, _ session: Session) -> BootInstant? {
        // Whatever runs in the lane ends with another look.
        guard session.isRefreshable, lane.refreshes.isEmpty, !lane.isChanging else { return nil }
        // A service's first token is fetched for whoever asks for it.
        if session.isOfService, session.tokens[.own] == nil || awaitsMending(lane) { return nil }
        let now = clock.bootInstant
        var due: BootInstant?
        // A token that is stillborn has no time before its expiry: whoever wants one asks, or there is no end.
        if let token = session.tokens[.own], let expiry = token.expiry,
            token.lifetime ?? .max >= SessionManager.shortestLifetime
        {
            let margin = SessionManager.margin(
                lifetime: token.lifetime ?? expiry.remaining(at: now), configured: lane.account.refreshMargin)
            // Earlier by chance, so that sessions that began together do not go on together.
            due = expiry.boot - margin * Double.random(in: 1...1.2)
        } else if session.tokens[.own] == nil {
            due = now
        }
        if let end = session.end, end.boot > now, lane.triedEnd != end {
            // The refresh token has an end of its own: used in time, most providers move it.
            let margin = SessionManager.margin(lifetime: end.remaining(at: now), configured: nil)
            due = min(due ?? .never, max(now, end.boot - margin * Double.random(in: 1...1.2)))
        }
        if lane.isOverdue || session.unvalidatedRefreshToken != nil { due = now }
        guard let due else { return nil }
        if let last = lane.lastRefresh, case .failure(.cancelled) = last.result {
            // It tells nothing of the provider, but it may go on.
            return max(due, last.endedAt + SessionManager.saveRetryInterval, lane.backoff.until)
        }
        return lane.backoff.error == nil ? due : max(due, lane.backoff.until)
    }

    func unschedule(_ name: AccountName) {
        scheduler.remove(.refresh(name))
        if !unwritten.keys.contains(where: { $0.account == name.rawValue }) { scheduler.remove(.save(name)) }
        for seconds in lanes[name]?.account.sessionWarnings ?? [] { scheduler.remove(.warn(name, seconds: seconds)) }
    }

    func note(_ errand: ScheduledTask, at instant: BootInstant) {
        let next = scheduler.next
        scheduler.set(errand, at: instant)
        if next.map({ instant < $0 }) ?? true {
            signal.fulfil(())
            signal = Promise()
        }
    }

    // MARK: Doing

    /// Starts everything that is due, and says how long there is nothing to do; the bell rings if that changes.
    func runDueTasks() -> (pause: Duration, signal: Promise<Void>) {
        let now = clock.bootInstant
        while let errand = scheduler.popDue(at: now) { run(errand, at: now) }
        guard let next = scheduler.next else { return (SessionManager.longestSleep, signal) }
        return (min(max(next - now, .milliseconds(1)), SessionManager.longestSleep), signal)
    }

    private func run(_ errand: ScheduledTask, at now: BootInstant) {
        switch errand {
        case .openVault: work.start { _ = await self.openVault(passphrase: nil, isAsked: false) }
        case .load(let name): if case .open = vaultState { load(name, isNews: false) }
        case .save(let name): saveAgain(name)
        case .warn(let name, _):
            guard let session = lanes[name]?.session, let end = session.end else { return }
            post(.sessionEnding, name, session: session, endsAt: end.wall(by: clock).seconds)
            record(.sessionEnding(name, at: end.wall(by: clock).seconds))
        case .refresh(let name): refreshInTime(name, at: now)
        }
    }

    private func refreshInTime(_ name: AccountName, at now: BootInstant) {
        guard let lane = lanes[name], lockError == nil, lane.refreshes[.own] == nil else { return }
        if lane.backoff.refusal(at: now) != nil { return schedule(name) }
        let provider = lane.account.binding.provider
        guard tasksRunning[provider, default: 0] < SessionManager.errandsPerProvider else {
            // Its turn comes when one of those that run has ended.
            tasksWaiting[provider, default: []].insert(name)
            return
        }
        tasksRunning[provider, default: 0] += 1
        let refresh = startRefresh(of: name, .own, for: .scheduled)
        work.start {
            _ = await refresh.wait()
            await self.errandEnded(provider)
        }
    }

    private func errandEnded(_ provider: String) {
        let left = tasksRunning[provider, default: 1] - 1
        tasksRunning[provider] = left > 0 ? left : nil
        // Planned anew: much may have happened since they were due. When the last has ended nobody else would call them.
        guard var waiting = tasksWaiting[provider] else { return }
        let called: [AccountName] = left > 0 ? Array(waiting.prefix(1)) : Array(waiting)
        waiting.subtract(called)
        tasksWaiting[provider] = waiting.isEmpty ? nil : waiting
        for name in called { schedule(name) }
    }

    private func saveAgain(_ name: AccountName) {
        enqueue(name) { sessionManager in
            await sessionManager.writeUnwritten(of: name)
            guard let lane = sessionManager.lanes[name], lane.isUnsaved, let session = lane.session else { return }
            let error = await sessionManager.save(session, lane.account)
            guard sessionManager.lanes[name]?.generation == lane.generation else { return }
            sessionManager.lanes[name]?.isUnsaved = error != nil
            if error == nil, case .vaultFailed? = sessionManager.lanes[name]?.error {
                sessionManager.lanes[name]?.error = nil
            }
            sessionManager.schedule(name)
        }
    }

    /// In a turn of the account's lane.
    private func writeUnwritten(of name: AccountName) async {
        guard lockError == nil else { return }
        for (slot, session) in unwritten where slot.account == name.rawValue {
            guard await write(session, in: slot) != nil else { continue }
            note(.save(name), at: clock.bootInstant + SessionManager.saveRetryInterval)
        }
    }

    /// The last chance before the daemon ends.
    func saveEverything() {
        let names = lanes.filter(\.value.isUnsaved).map(\.key) + unwritten.keys.compactMap { AccountName($0.account) }
        for name in Set(names) { saveAgain(name) }
    }

    /// The network is back: those who wait for no other reason try at once.
    func networkReturned() {
        let now = clock.bootInstant
        for name in lanes.keys {
            guard case .provider(.unreachable)? = lanes[name]?.backoff.error else { continue }
            lanes[name]?.backoff.relent(at: now)
            schedule(name)
        }
        if case .locked(_, isAsked: false) = vaultState { note(.openVault, at: now) }
    }

    /// The vault's key source may have changed its mind.
    func keySourceChanged() {
        if case .locked(_, isAsked: false) = vaultState { note(.openVault, at: clock.bootInstant) }
    }
}
