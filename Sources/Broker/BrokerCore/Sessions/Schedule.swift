/// What the session manager does without being asked.
enum ScheduledTask: Hashable, Sendable {
    case refresh(AccountName)
    /// Write to the vault again after a failed write.
    case save(AccountName)
    /// Read the vault again after a failed read.
    case load(AccountName)
    /// Warn this long before the session ends.
    case warn(AccountName, before: Duration)
    case openVault
    /// Ask the vault again for a refresh that waits for another host.
    case resume(AccountName)
}

/// Refreshes before expiry, and all other tasks that no caller asks for, with the instant at which each is due.
struct Schedule: Sendable {
    private(set) var tasks = Scheduler<ScheduledTask>()
    /// Refreshes that the schedule started and that still run, by provider.
    private(set) var running: [String: Int] = [:]
    /// Accounts whose refresh is due but waits, since enough refreshes run at the provider.
    private var waiting: [String: Set<AccountName>] = [:]
    /// Fulfilled when a task is set that is due before all others.
    private(set) var signal = Promise<Void>()

    /// The longest sleep: timers do not count the time that a laptop is suspended.
    static let longestSleep: Duration = .seconds(30)
    /// After a night's suspend every session is due at once. One provider gets at most this many requests at a time.
    private static let refreshesPerProvider = 16
    /// A token with a shorter lifetime is refreshed only when a caller asks for it.
    private static let shortestLifetime: Duration = .seconds(2)
    /// How long after a failed write to the vault the next one is tried.
    static let saveRetryInterval: Duration = .seconds(5)

    /// How long before its expiry a token is refreshed.
    ///
    /// - Parameters:
    ///   - lifetime: as the provider stated it.
    ///   - configured: the account's own margin, if it has one.
    static func margin(lifetime: Duration, configured: Duration?) -> Duration {
        let usual = configured ?? min(.seconds(300), lifetime / 5)
        // A margin as long as the lifetime would refresh without end.
        return min(usual, lifetime / 2)
    }

    mutating func set(_ task: ScheduledTask, at instant: BootInstant) {
        let next = tasks.next
        tasks.set(task, at: instant)
        if next.map({ instant < $0 }) ?? true {
            signal.fulfil(())
            signal = Promise()
        }
    }

    mutating func remove(_ task: ScheduledTask) { tasks.remove(task) }

    mutating func popDue(at now: BootInstant) -> ScheduledTask? { tasks.popDue(at: now) }

    /// How long until the next task is due, at most ``longestSleep``.
    func pause(at now: BootInstant) -> Duration {
        tasks.next.map { min(max($0 - now, .milliseconds(1)), Schedule.longestSleep) } ?? Schedule.longestSleep
    }

    // MARK: The tasks of an account

    /// Sets or removes the account's tasks, as its state requires.
    ///
    /// - Parameters:
    ///   - isServed: false while the vault is locked.
    ///   - hasUnwritten: a session of the account that no lane holds is not in the vault yet.
    mutating func plan(_ account: Account, _ state: LaneState, isServed: Bool, hasUnwritten: Bool, at now: BootInstant)
    {
        let name = account.name
        guard isServed, state.visible != nil, let held = state.held else {
            tasks.remove(.refresh(name))
            if !hasUnwritten { tasks.remove(.save(name)) }
            for time in account.sessionWarnings { tasks.remove(.warn(name, before: time)) }
            return
        }
        if let due = refreshInstant(account, state, held, now) {
            set(.refresh(name), at: due)
        } else {
            tasks.remove(.refresh(name))
        }
        if state.isUnsaved, tasks[.save(name)] == nil { set(.save(name), at: now + Schedule.saveRetryInterval) }
        planWarnings(name, account.sessionWarnings, held.session.end, now)
    }

    /// A warning whose instant has passed has been given, unless its task is still there: then it became due during a
    /// suspend, or since the tasks were last looked at.
    private mutating func planWarnings(
        _ name: AccountName, _ warnings: [Duration], _ end: Deadline?, _ now: BootInstant
    ) {
        for time in warnings {
            let task = ScheduledTask.warn(name, before: time)
            guard let end, end.boot > now else {
                tasks.remove(task)
                continue
            }
            let due = end.boot - time
            if due > now || tasks[task] != nil { set(task, at: due) }
        }
    }

    private func refreshInstant(
        _ account: Account, _ state: LaneState, _ held: HeldSession, _ now: BootInstant
    ) -> BootInstant? {
        let (session, renewal) = (held.session, state.renewal)
        // The tasks are planned again when what runs in the lane has ended.
        guard session.isRefreshable, renewal.running.isEmpty, !renewal.isChangeRunning else { return nil }
        // The first token of a configured session is fetched when a caller asks for it.
        if session.isConfigured, session.tokens[.own] == nil || state.needsConfigurationChange { return nil }
        var due: BootInstant?
        // A token with almost no lifetime is refreshed only when a caller asks for it: refreshing it ahead would never
        // end.
        if let token = session.tokens[.own], let expiry = token.expiry,
            token.lifetime.map({ $0 >= Schedule.shortestLifetime }) ?? true
        {
            let margin = Schedule.margin(
                lifetime: token.lifetime ?? expiry.remaining(at: now), configured: account.refreshMargin)
            // Earlier by a random share, so that sessions that began together are not refreshed together.
            due = expiry.boot - margin * Double.random(in: 1...1.2)
        } else if session.tokens[.own] == nil {
            due = now
        }
        if let end = session.end, end.boot > now, !held.hasTriedEnd {
            // The refresh token has an expiry of its own. Most providers extend it if the token is used in time.
            let margin = Schedule.margin(lifetime: end.remaining(at: now), configured: nil)
            due = min(due ?? .never, max(now, end.boot - margin * Double.random(in: 1...1.2)))
        }
        if held.isUrgent || session.unvalidated != nil { due = now }
        guard let due else { return nil }
        if let last = held.lastRefresh, last.error == .cancelled {
            // A cancelled attempt says nothing about the provider. The next one may be cancelled too, so it waits a
            // little.
            return max(due, last.endedAt + Schedule.saveRetryInterval, renewal.backoff.until)
        }
        return renewal.backoff.error == nil ? due : max(due, renewal.backoff.until)
    }

    // MARK: How many run

    /// False if enough refreshes run at the provider. The account is planned again when one of them has ended.
    mutating func mayBegin(_ name: AccountName, at provider: String) -> Bool {
        guard running[provider, default: 0] < Schedule.refreshesPerProvider else {
            waiting[provider, default: []].insert(name)
            return false
        }
        running[provider, default: 0] += 1
        return true
    }

    /// A refresh has ended. Returns the accounts to be planned again: their state may have changed since they were due.
    mutating func ended(at provider: String) -> [AccountName] {
        let left = running[provider, default: 1] - 1
        running[provider] = left > 0 ? left : nil
        // After the last refresh nothing else would wake those that wait, so all of them are returned.
        guard left > 0 else { return waiting.removeValue(forKey: provider).map(Array.init) ?? [] }
        guard let called = waiting[provider]?.popFirst() else { return [] }
        if waiting[provider]?.isEmpty == true { waiting[provider] = nil }
        return [called]
    }
}
