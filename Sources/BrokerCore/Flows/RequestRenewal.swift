/// A request that was pushed (RFC 9126) is known to the provider for a minute or so, and can be opened once; a person
/// may take ten to come to the address, or come twice. So whoever asks for a flow's address gets one that can be opened:
/// the same request is pushed again where the last reference has lapsed or somebody may have used it. It stays one flow,
/// with one state, one deadline and one callback.
extension FlowRegistry {
    /// A flow's request on its way to the provider for another reference.
    struct Renewal {
        let promise: Promise<Result<Void, BrokerError>>
        /// Seconds since boot.
        let startedAt: Int

        /// Seconds from its start until another may be begun: as the provider wishes, and never at once.
        var pause: Int {
            guard case .failure(let error)? = promise.value else { return FlowRegistry.youth }
            return max(FlowRegistry.youth, error.retryAfter ?? 0)
        }
    }

    /// What becomes of a wish for a fresh address.
    enum RenewalAdmission {
        case joining(Promise<Result<Void, BrokerError>>)
        /// The caller must push the flow's request and say what came of it with ``renewed(_:with:fulfilling:)``.
        case begin(Flow, Promise<Result<Void, BrokerError>>)
    }

    /// A reference this young has been opened by nobody, and one that was just refused is not asked for again (seconds).
    private static let youth = 5
    /// What is left of a reference's life must be enough to open a page (seconds).
    private static let reserve = 10

    /// Nil where the flow's address will do. To a newcomer it will not if the one before may have opened it.
    func renewal(of id: String, isForNewcomer: Bool) -> RenewalAdmission? {
        let id = pageOwner(of: id)
        guard let entry = entries[id], entry.status == .pending, entry.claim == nil,
            let page = entry.flow.awaited.pageLife
        else { return nil }
        let age = clock.uptime - page.since
        let isLapsing = age + min(FlowRegistry.reserve, page.seconds / 2) >= page.seconds
        guard isLapsing || (isForNewcomer && age >= FlowRegistry.youth) else { return nil }
        if let last = entry.renewal,
            last.promise.value == nil || clock.uptime - last.startedAt < last.pause
        {
            return .joining(last.promise)
        }
        let promise = Promise<Result<Void, BrokerError>>()
        entries[id]?.renewal = Renewal(promise: promise, startedAt: clock.uptime)
        return .begin(entry.flow, promise)
    }

    /// What came of making the page known again.
    func renewed(
        _ id: String, with result: Result<any AwaitedSignIn, BrokerError>,
        fulfilling promise: Promise<Result<Void, BrokerError>>
    ) {
        if case .success(let awaited) = result { entries[id]?.flow.awaited = awaited }
        promise.fulfil(result.map { _ in })
    }

    /// The flow whose page a flow shows: another account's, where it waits for that one.
    func pageOwner(of id: String) -> String {
        entries[id]?.flow.awaited.upstream?.flow ?? id
    }

    /// True if the provider still knows the flow's request.
    func canBeOpened(_ id: String) -> Bool {
        guard let page = entries[pageOwner(of: id)]?.flow.awaited.pageLife else { return true }
        return clock.uptime - page.since < page.seconds
    }
}

extension Broker {
    /// Whoever only looks does not wait longer for it.
    private static let lookingTimeout: Duration = .seconds(5)

    /// The flow for somebody who joins it and will open its address. If none can be had, they have not joined.
    func openable(
        _ view: FlowView, isInterested: Bool, waitingAtMost bound: Duration
    ) async throws(BrokerError) -> FlowView {
        // Looked at again: another newcomer may have had the address renewed since the view was taken.
        guard let renewal = await renewal(of: view.id, isForNewcomer: true) else {
            return try await flowRegistry.view(view.id)
        }
        let result = await renewal.wait(atMost: max(bound, .zero))
        if case .success? = result { return try await flowRegistry.view(view.id) }
        // What may have been used may not have been.
        if case .failure? = result, await flowRegistry.canBeOpened(view.id) { return view }
        if isInterested { _ = try? await flowRegistry.cancel(view.id, isForAll: false) }
        guard case .failure(let error)? = result else { throw .endOfWait }
        throw error
    }

    /// Flows whose addresses have lapsed get others, for somebody who looks at them.
    func renewLapsed(_ ids: [String]) async {
        var renewals: [Promise<Result<Void, BrokerError>>] = []
        for id in ids {
            if let renewal = await renewal(of: id, isForNewcomer: false) { renewals.append(renewal) }
        }
        let end = ContinuousClock.now + Broker.lookingTimeout
        for renewal in renewals { _ = await renewal.wait(atMost: max(end - .now, .zero)) }
    }

    private func renewal(of id: String, isForNewcomer: Bool) async -> Promise<Result<Void, BrokerError>>? {
        switch await flowRegistry.renewal(of: id, isForNewcomer: isForNewcomer) {
        case nil: return nil
        case .joining(let promise): return promise
        case .begin(let flow, let promise):
            // It is everybody's who waits for the flow: it does not end with this caller.
            work.start {
                let provider = flow.account.provider(with: tools)
                let result = await Result(awaiting: { () throws(BrokerError) in try await provider.renewPage(of: flow) }
                )
                await flowRegistry.renewed(flow.id, with: result, fulfilling: promise)
            }
            return promise
        }
    }
}
