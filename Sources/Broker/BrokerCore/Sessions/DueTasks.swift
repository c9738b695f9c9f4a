internal import SessionVault

/// Starts what is due. Due times are measured since boot, and are looked at again at least every 30 seconds: timers do
/// not count the time that a laptop is suspended, and nothing here depends on the wall clock.
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
            await sessionManager.writeUnwritten(of: name)
            guard let lane = sessionManager.lanes[name], lane.state.isUnsaved, let session = lane.state.session else {
                return
            }
            let error = await sessionManager.save(session, lane.account)
            sessionManager.take(error == nil ? .saved : .notSaved, lane.id)
        }
    }

    /// To be called in a turn of the account's lane.
    private func writeUnwritten(of name: AccountName) async {
        guard lockError == nil else { return }
        for (slot, session) in residue.unwritten where slot.account == name.rawValue {
            do throws(BrokerError) {
                try await write(session, in: slot)
            } catch {
                schedule.set(.save(name), at: clock.bootInstant + Schedule.saveRetryInterval)
            }
        }
    }

    /// Tries to save everything once more before the daemon ends.
    func saveEverything() {
        let names =
            lanes.filter(\.value.state.isUnsaved).map(\.key)
            + residue.unwritten.keys.compactMap { AccountName($0.account) }
        for name in Set(names) { saveAgain(name) }
    }

    /// The network is back: what failed for lack of it is tried at once.
    func networkReturned() {
        let now = clock.bootInstant
        for lane in lanes.values { take(.networkReturned, lane.id) }
        if vaultState.isToBeOpened { schedule.set(.openVault, at: now) }
    }

    /// The vault's key source may be available now.
    func keySourceChanged() {
        if vaultState.sourceChanged() { schedule.set(.openVault, at: clock.bootInstant) }
    }
}
