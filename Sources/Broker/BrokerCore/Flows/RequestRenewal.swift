/// A provider keeps a pushed request (RFC 9126) for about a minute, and it can be opened once. But a user may open the
/// address ten minutes later, or twice. So the same request is pushed again when a caller asks for the address and the
/// last reference has expired or may have been used. It stays one flow, with one state, deadline and callback.
extension FlowRegistry {
    struct Renewal {
        let promise: Promise<Result<Void, BrokerError>>
        let startedAt: BootInstant

        /// How long after its start another push may begin: as long as the provider asks, but not less than
        /// ``FlowRegistry/minimumAge``.
        var pause: Duration {
            guard case .failure(let error)? = promise.value else { return FlowRegistry.minimumAge }
            return max(FlowRegistry.minimumAge, .seconds(error.retryAfter ?? 0))
        }
    }

    /// A younger reference counts as unused. After a refused push the next one waits this long.
    private static let minimumAge: Duration = .seconds(5)
    private static let openingTime: Duration = .seconds(10)

    /// Pushes the flow's request again, or joins the push that is on its way. Nil if the flow's URL can be used. It can
    /// be opened once, so a caller that joins later needs a new one if an earlier caller may have opened it.
    func renewal(of id: String, isForNewcomer: Bool) -> Promise<Result<Void, BrokerError>>? {
        let id = pageOwner(of: id)
        guard let entry = entries[id], entry.status == .pending, entry.claim == nil,
            let page = entry.flow.awaited.pageLife
        else { return nil }
        let age = clock.bootInstant - page.since
        let isLapsing = age + min(FlowRegistry.openingTime, page.duration / 2) >= page.duration
        guard isLapsing || (isForNewcomer && age >= FlowRegistry.minimumAge) else { return nil }
        if let last = entry.renewal, last.promise.value == nil || clock.bootInstant - last.startedAt < last.pause {
            return last.promise
        }
        let promise = Promise<Result<Void, BrokerError>>()
        entries[id]?.renewal = Renewal(promise: promise, startedAt: clock.bootInstant)
        let flow = entry.flow
        // Other callers wait for this push too, so it goes on if this caller disconnects.
        sessionManager.work.start {
            let provider = flow.account.provider(with: self.sessionManager.tools)
            let result = await Result(awaiting: { () throws(BrokerError) in try await provider.renewPage(of: flow) })
            await self.renewed(flow.id, with: result, fulfilling: promise)
        }
        return promise
    }

    private func renewed(
        _ id: String, with result: Result<any AwaitedSignIn, BrokerError>,
        fulfilling promise: Promise<Result<Void, BrokerError>>
    ) {
        if case .success(let awaited) = result { entries[id]?.flow.awaited = awaited }
        promise.fulfil(result.map { _ in })
    }

    /// The flow whose page is opened for a flow: if it waits for a flow of another account, that one.
    func pageOwner(of id: String) -> String { entries[id]?.flow.awaited.upstream?.flow ?? id }

    func canBeOpened(_ id: String) -> Bool {
        guard let page = entries[pageOwner(of: id)]?.flow.awaited.pageLife else { return true }
        return clock.bootInstant - page.since < page.duration
    }
}

extension Broker {
    /// How long a caller that only reads the flow waits for a new reference.
    private static let lookingTimeout: Duration = .seconds(5)

    /// The flow for a caller that joins it and will open its address. Without a usable one, it has not joined.
    func openable(
        _ view: FlowView, isInterested: Bool, waitingAtMost bound: Duration
    ) async throws(BrokerError) -> FlowView {
        // Read again: another caller may have renewed the URL since the view was taken.
        guard let renewal = await flowRegistry.renewal(of: view.id, isForNewcomer: true) else {
            return try await flowRegistry.view(view.id)
        }
        let result = await renewal.wait(atMost: max(bound, .zero))
        if case .success? = result { return try await flowRegistry.view(view.id) }
        // The push failed. The former reference may still be unused.
        if case .failure? = result, await flowRegistry.canBeOpened(view.id) { return view }
        if isInterested { _ = try? await flowRegistry.cancel(view.id, isForAll: false) }
        guard case .failure(let error)? = result else { throw .endOfWait }
        throw error
    }

    /// Gives new addresses to flows whose addresses have expired, for a caller that reads them.
    func renewLapsed(_ ids: [String]) async {
        var renewals: [Promise<Result<Void, BrokerError>>] = []
        for id in ids {
            if let renewal = await flowRegistry.renewal(of: id, isForNewcomer: false) { renewals.append(renewal) }
        }
        let end = ContinuousClock.now + Broker.lookingTimeout
        for renewal in renewals { _ = await renewal.wait(atMost: max(end - .now, .zero)) }
    }
}
