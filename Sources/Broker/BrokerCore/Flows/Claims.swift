internal import RingbackBase

/// Claims on pending flows. Everything is checked first, and the flow is taken in the same turn: a callback that is not
/// genuine consumes, aborts and completes nothing.
extension FlowRegistry {
    enum Claim {
        /// The caller now owns the flow's one proof and must fulfil the promise.
        case claimed(Flow, Promise<CallbackVerdict>)
        case repeated(Promise<CallbackVerdict>)
        /// Another proof of the flow is being redeemed, and may turn out not to be genuine.
        case busy(Promise<CallbackVerdict>)
        case decided(CallbackVerdict)
    }

    /// Finds the flow of a callback in two passes: by the digest of a key first, then by the address, for the only
    /// pending flow there whose callback has no key. A callback with the key of any flow is not tried in the second
    /// pass: the code of one provider must not reach another one.
    func claim(_ arrival: Arrival) async -> Claim {
        var isKnown = false
        for key in arrival.keys {
            guard let id = identifiers[key], let entry = entries[id] else { continue }
            isKnown = true
            guard arrival.mayBelong(to: entry.flow) else { continue }
            if let claim = await claim(arrival, of: entry, entry.awaited(for: key)) { return claim }
        }
        let complaint = arrival.complaint ?? .malformedCallback
        if !isKnown, let id = await refuse(arrival, because: complaint) {
            return .decided(.ignored(complaint, flow: id))
        }
        if !isKnown, let entry = keylessEntry(of: arrival),
            let claim = await claim(arrival, of: entry, entry.flow.awaited)
        {
            return claim
        }
        if !isKnown, let hint = hint(for: arrival.url) { return .decided(.ignored(hint)) }
        return .decided(.ignored(arrival.complaint ?? .unknownState))
    }

    /// Notes that a callback was refused. Returns the pending flow whose key it has; nil if there is none.
    func refuse(_ arrival: Arrival, because reason: Reason) async -> String? {
        for key in arrival.keys + arrival.strayKeys {
            guard let id = identifiers[key], let entry = entries[id], entry.status == .pending,
                arrival.mayBelong(to: entry.flow)
            else { continue }
            await refuse(id, because: reason)
            return id
        }
        return nil
    }

    private func claim(_ arrival: Arrival, of entry: Entry, _ awaited: any AwaitedSignIn) async -> Claim? {
        let id = entry.flow.id
        let state = FlowStanding(
            isPending: entry.status == .pending, attempts: entry.attempts, hasOlderMessage: entry.hasOlderMessage)
        let recognition = awaited.recognize(arrival, of: state)
        switch recognition {
        case .foreign: return nil
        case .ignored(let reason):
            guard entry.status == .pending, !awaited.isKeyless else { return .decided(.ignored(reason)) }
            await refuse(id, because: reason)
            return .decided(.ignored(reason, flow: id))
        case .noted: return .decided(.noted(flow: id))
        case .outdated: return .decided(.outdated(flow: id))
        case .genuine, .likely: break
        }
        let claim = await take(id, arrival.fingerprint)
        switch claim {
        case .claimed(var flow, let verdict):
            // The request that this callback belongs to, where the flow has more than one.
            flow.awaited = awaited
            return .claimed(flow, verdict)
        case .busy where recognition == .genuine: return .decided(.ignored(.anotherCallback))
        case .busy, .repeated, .decided: return claim
        }
    }

    private func keylessEntry(of arrival: Arrival) -> Entry? {
        guard arrival.form == nil else { return nil }
        let keyless = entries.values.filter {
            $0.flow.awaited.isKeyless && arrival.mayBelong(to: $0.flow)
                && FlowRegistry.isPlace(arrival.address, of: $0.flow.redirectURI)
        }
        // A copy of a link that ended a flow a moment ago belongs to that flow, even if another one is pending now.
        return keyless.first { isCopy(arrival.fingerprint, of: $0) } ?? keyless.first { $0.status == .pending }
    }

    private func hint(for url: WebURL) -> Reason? {
        for entry in entries.values where entry.status == .pending {
            if let hint = entry.flow.awaited.hint(for: url, of: entry.flow.account.name) { return hint }
        }
        return nil
    }

    func claim(_ id: String, awaiting kind: Proof.Kind, _ fingerprint: [UInt8]) async throws(BrokerError) -> Claim {
        _ = try pendingFlow(id, awaiting: kind)
        return await take(id, fingerprint)
    }

    /// The last step of every claim: the first caller takes the flow.
    func take(_ id: String, _ fingerprint: [UInt8]) async -> Claim {
        guard var entry = entries[id] else { return .decided(.ended) }
        if let claim = entry.claim {
            if isCopy(fingerprint, of: entry) { return .repeated(claim.verdict) }
            if entry.endedAt == nil { return .busy(claim.verdict) }
        } else if entry.status == .pending {
            guard entry.flow.isOver(by: clock) else {
                let verdict = Promise<CallbackVerdict>()
                entry.claim = (fingerprint, verdict)
                entries[id] = entry
                return .claimed(entry.flow, verdict)
            }
            await expire(id)
        }
        if case .expired? = entries[id]?.status { return .decided(.expired(flow: id)) }
        return .decided(.ended)
    }

    /// True if the flow was claimed with an identical callback, and has not ended or ended a moment ago.
    private func isCopy(_ fingerprint: [UInt8], of entry: Entry) -> Bool {
        guard let claim = entry.claim, claim.fingerprint == fingerprint else { return false }
        return entry.endedAt.map { clock.bootInstant - $0 <= FlowRegistry.repeatWindow } ?? true
    }

    func release(_ id: String, changing change: AwaitedChange? = nil) async {
        if let change { self.change(id, change) }
        entries[id]?.claim = nil
        guard let flow = entries[id]?.flow, flow.isOver(by: clock) else { return }
        await finish(id, as: .expired(entries[id]?.expiry ?? flow.expiry))
    }

    /// Ends a claim whose proof was not the genuine one. A flow whose callbacks have a key shows the reason.
    func reject(_ id: String, because reason: Reason, isShown: Bool) async {
        entries[id]?.attempts += 1
        await release(id)
        if isShown { await refuse(id, because: reason) }
    }

    /// Without keys, only the scheme tells which flow a callback belongs to.
    func refuseSecondKeyless(at redirectURI: String, for account: AccountName) throws(BrokerError) {
        let scheme = redirectURI.prefix { $0 != ":" }.lowercased()
        let isTaken = entries.values.contains { entry in
            // A flow that waits for a mail and has no key is ended when another one of its account begins.
            entry.status == .pending && (entry.flow.account.name != account || !entry.flow.awaited.waitsForMail)
                && entry.flow.awaited.isKeyless
                && entry.flow.redirectURI.prefix { $0 != ":" }.lowercased() == scheme
        }
        guard !isTaken else {
            throw .conflict(
                .stated(
                    "A sign-in by the scheme \(scheme) is pending, and without keys (redirect_flow_key = \"none\") "
                        + "there can be one at a time. Finish or cancel it."))
        }
    }

    // MARK: Proofs without a callback

    func pendingFlow(_ id: String, awaiting kind: Proof.Kind) throws(BrokerError) -> Flow {
        guard let entry = entries[id] else { throw .flowNotFound }
        guard entry.status == .pending else { throw .flowEnded }
        guard entry.flow.awaited.proofs.contains(kind) else { throw .conflict(.noProofAwaited(kind)) }
        return entry.flow
    }

    /// Changes what a pending flow awaits. False if nothing is left: from here on only ``finish(_:as:)`` ends the flow.
    @discardableResult
    func change(_ id: String, _ change: AwaitedChange) -> Bool {
        guard let entry = entries[id], entry.status == .pending else { return true }
        guard let awaited = change(entry.flow.awaited) else {
            entries[id]?.isSettling = true
            return false
        }
        entries[id]?.flow.awaited = awaited
        return true
    }

    /// Permits to send the message again once. Throws, with the time to wait, if it is too early.
    func admitResending(_ id: String) throws(BrokerError) {
        guard let entry = entries[id], let due = entry.resendAt else { return }
        let now = clock.bootInstant
        // Callers are told whole seconds, so less than one counts as none.
        let wait = (due - now).wholeSeconds
        guard wait <= 0 else {
            throw entry.isResendLimitOfProvider
                ? .provider(.rateLimited(retryAfter: wait)) : .resendTooEarly(retryAfter: wait)
        }
        entries[id]?.resendAt = now + (entry.flow.awaited.resendInterval ?? .zero)
        entries[id]?.isResendLimitOfProvider = false
        entries[id]?.hasOlderMessage = true
    }

    func postponeResending(_ id: String, by pause: Duration) {
        entries[id]?.resendAt = clock.bootInstant + pause
        entries[id]?.isResendLimitOfProvider = true
    }

    /// The user signs out: a pending change of that user is cancelled.
    func endChange(of account: AccountName) async {
        for id in pendingIDs(of: account) {
            guard let entry = entries[id], entry.flow.request.changesUser, !entry.isSettling else { continue }
            await finish(id, as: .cancelled)
        }
    }
}
