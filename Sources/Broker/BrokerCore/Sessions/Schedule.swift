internal import SessionVault

enum ScheduledTask: Hashable, Sendable {
    case refresh(AccountName)
    case save(AccountName)
    case load(AccountName)
    case warn(AccountName, before: Duration)
    case openVault
    /// Ask the vault again for a refresh that waits for another host.
    case resume(AccountName)
}

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

    /// How long before its expiry a token is refreshed, by its stated lifetime and the account's own margin.
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

    func pause(at now: BootInstant) -> Duration {
        tasks.next.map { min(max($0 - now, .milliseconds(1)), Schedule.longestSleep) } ?? Schedule.longestSleep
    }

    // MARK: The tasks of an account

    /// Sets or removes the account's tasks. `isServed`: the vault is open. `hasUnwritten`: a session that no lane holds
    /// is not in the vault yet.
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

    /// A warning whose instant has passed was given, unless its task is still there: it became due during a suspend.
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
        // Refreshing a token with almost no lifetime ahead would never end.
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
            // A cancelled attempt says nothing about the provider, but the next one may be cancelled too.
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

/// Starts what is due, by the time since boot, at least every 30 seconds: timers do not count a suspend.
extension SessionManager {
    /// Starts every due task. Returns the time until the next one, and a signal that is fulfilled if that time changes.
    func runDueTasks() -> (pause: Duration, signal: Promise<Void>) {
        let now = clock.bootInstant
        while let task = schedule.popDue(at: now) { run(task, at: now) }
        return (schedule.pause(at: now), schedule.signal)
    }

    private func run(_ task: ScheduledTask, at now: BootInstant) {
        switch task {
        case .openVault: work.start { _ = await self.openVault(passphrase: nil, isAsked: false) }
        case .load(let name): if isOpen { load(name, isAfterReload: false) }
        case .save(let name): saveAgain(name)
        case .warn(let name, _):
            guard let session = lanes[name]?.state.session, let end = session.end else { return }
            post(.sessionEnding, name, session: session, endsAt: end.wall(by: clock))
            record(.sessionEnding(name, at: end.wall(by: clock)))
        case .refresh(let name): refreshInTime(name, at: now)
        case .resume(let name): resume(name)
        }
    }

    private func refreshInTime(_ name: AccountName, at now: BootInstant) {
        guard let lane = lanes[name], lockError == nil, lane.state.renewal.running[.own] == nil else { return }
        if lane.state.renewal.backoff.refusal(at: now) != nil { return plan(name) }
        let provider = lane.account.binding.provider
        guard schedule.mayBegin(name, at: provider) else { return }
        let refresh = startRefresh(of: name, .own, for: .scheduled)
        // A refresh that waits for another host must not delay the daemon's end.
        work.startTimer {
            _ = await refresh.wait()
            await self.refreshEnded(at: provider)
        }
    }

    private func refreshEnded(at provider: String) { for name in schedule.ended(at: provider) { plan(name) } }

    private func saveAgain(_ name: AccountName) {
        enqueue(name) { sessionManager in
            if sessionManager.lockError == nil {
                for (slot, session) in sessionManager.detached.unwritten where slot.account == name.rawValue {
                    do throws(BrokerError) {
                        try await sessionManager.write(session, in: slot)
                    } catch {
                        let next = sessionManager.clock.bootInstant + Schedule.saveRetryInterval
                        sessionManager.schedule.set(.save(name), at: next)
                    }
                }
            }
            guard let lane = sessionManager.lanes[name], lane.state.isUnsaved, let session = lane.state.session else {
                return
            }
            let error = await sessionManager.save(session, lane.account)
            sessionManager.take(error == nil ? .saved : .notSaved, lane.id)
        }
    }

    func saveEverything() {
        let names =
            lanes.values.filter(\.state.isUnsaved).map(\.account.name)
            + detached.unwritten.keys.compactMap { AccountName($0.account) }
        for name in Set(names) { saveAgain(name) }
    }

    /// The network is back: what failed for lack of it is tried at once.
    func networkReturned() {
        let now = clock.bootInstant
        for lane in lanes.values { take(.networkReturned, lane.id) }
        if vaultState.isToBeOpened { schedule.set(.openVault, at: now) }
    }

    func keySourceChanged() {
        if vaultState.sourceChanged() { schedule.set(.openVault, at: clock.bootInstant) }
    }
}

/// A priority queue: a binary heap that knows every key's place, so that moving or removing one costs O(log n).
struct Scheduler<Key: Hashable & Sendable>: Sendable {
    private struct Item {
        var key: Key
        var at: BootInstant
    }
    private var heap: [Item] = []
    private var places: [Key: Int] = [:]

    var count: Int { heap.count }
    var next: BootInstant? { heap.first?.at }

    subscript(key: Key) -> BootInstant? { places[key].map { heap[$0].at } }

    mutating func set(_ key: Key, at instant: BootInstant) {
        if let place = places[key] {
            heap[place].at = instant
            settle(place)
        } else {
            heap.append(Item(key: key, at: instant))
            places[key] = heap.count - 1
            settle(heap.count - 1)
        }
    }

    mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key) else { return }
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        places[last.key] = place
        settle(place)
    }

    mutating func popDue(at now: BootInstant) -> Key? {
        guard let first = heap.first, first.at <= now else { return nil }
        remove(first.key)
        return first.key
    }

    private mutating func settle(_ start: Int) {
        var place = start
        while place > 0, heap[place].at < heap[(place - 1) / 2].at {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while true {
            let left = 2 * place + 1
            guard left < heap.count else { return }
            let child = left + 1 < heap.count && heap[left + 1].at < heap[left].at ? left + 1 : left
            guard heap[child].at < heap[place].at else { return }
            swap(place, child)
            place = child
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        heap.swapAt(one, other)
        places[heap[one].key] = one
        places[heap[other].key] = other
    }
}
