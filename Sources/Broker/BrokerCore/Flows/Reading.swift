/// Flows as callers see them.
extension FlowRegistry {
    /// A flow as it is.
    func view(_ id: String) throws(BrokerError) -> FlowView {
        forget()
        guard let entry = entries[id] else { throw .flowNotFound }
        return view(of: entry)
    }

    /// A flow once it has left `pending`, or as it is after the bound.
    ///
    /// - Parameter endsAtRefusal: the wait also ends when a callback of the flow is refused.
    func view(
        _ id: String, waiting bound: Duration, endsAtRefusal: Bool = false
    ) async throws(BrokerError) -> FlowView {
        guard let entry = entries[id] else { throw .flowNotFound }
        if entry.status == .pending, bound > .zero {
            entries[id]?.waiters += 1
            _ = await (endsAtRefusal ? entry.news : entry.ended).wait(atMost: bound)
            entries[id]?.waiters -= 1
            entries[id]?.watchedAt = clock.bootInstant
            if Task.isCancelled { throw .cancelled }
        }
        return try view(id)
    }

    /// Every flow that is remembered, oldest first.
    func views() -> [FlowView] {
        forget()
        return entries.values.sorted { $0.place < $1.place }.map { view(of: $0) }
    }

    /// True if the user denied or cancelled a sign-in of the account a moment ago: only an explicit one may ask again.
    func wasRefused(_ account: AccountName) -> Bool {
        entries.values.contains { entry in
            guard entry.flow.account.name == account, !entry.flow.request.changesUser, let endedAt = entry.endedAt,
                clock.bootInstant - endedAt < FlowRegistry.quietTime
            else { return false }
            switch entry.status {
            case .cancelled, .failed(.accessDenied): return true
            default: return false
            }
        }
    }

    /// See ``SignInContext/abandonedPage(of:)``.
    func abandonedPage(of account: AccountName) -> (any AwaitedSignIn)? {
        let last = entries.values.filter { $0.flow.account.name == account && $0.endedAt != nil }
            .max { $0.place < $1.place }
        guard let last, last.claim == nil, last.refusal == nil else { return nil }
        switch last.status {
        case .cancelled, .expired: return last.flow.awaited
        case .pending, .completed, .failed: return nil
        }
    }

    /// The account's pending flow that began last.
    func pending(_ account: AccountName) -> FlowView? {
        pendingIDs(of: account).first.flatMap { entries[$0] }.map { view(of: $0) }
    }

    /// The same of each account.
    func pending() -> [AccountName: FlowView] {
        let pending = entries.values.filter { $0.status == .pending }.sorted { $0.place > $1.place }
        return Dictionary(pending.map { ($0.flow.account.name, view(of: $0)) }) { first, _ in first }
    }

    /// True if a caller asked for the sign-in itself, and not only for a token.
    func isAskedFor(_ id: String) -> Bool { (entries[id]?.interest ?? 0) > 0 }

    func isPending(_ id: String) -> Bool { entries[id]?.status == .pending }

    /// The account's pending flows, the newest first.
    func pendingIDs(of account: AccountName) -> [String] {
        entries.values.filter { $0.flow.account.name == account && $0.status == .pending }
            .sorted { $0.place > $1.place }.map(\.flow.id)
    }

    func view(of entry: Entry) -> FlowView {
        let flow = entry.flow
        var view = FlowView(
            id: flow.id, account: flow.account.name, method: flow.request.method, status: entry.status,
            waitingFor: flow.awaited.waitingFor,
            authorizationURL: entries[pageOwner(of: flow.id)]?.flow.authorizationURL ?? flow.authorizationURL,
            redirectURI: flow.redirectURI,
            startedAt: flow.startedAt, expiresAt: flow.expiresAt,
            resendAfter: entry.resendAt.map { flow.startedAt + ($0 - flow.beganAt) })
        view.openAddresses = entry.entrances.map { OpenAddress(url: $0.url, visit: $0.visit) }
        view.changesUser = flow.request.changesUser
        if entry.status == .pending { view.refusal = entry.refusal.map { .invalidCallback($0) } }
        view.providerHost = flow.providerHost
        let details = flow.awaited.details
        view.device = details.device
        view.words = details.words
        view.isRecovery = details.isRecovery
        view.challenge = details.challenge
        view.awaitedCodes = details.codes
        view.isHalfConfirmed = details.isHalfConfirmed
        return view
    }
}
