internal import RingbackBase

/// The pending sign-ins.
actor FlowRegistry {
    struct Entry {
        var flow: Flow
        var requests: [any AwaitedSignIn] = []
        var entrances: [OpenAddress] = []
        var status = FlowView.Status.pending
        /// How many sign-in calls want it. When none is left, it is cancelled.
        var interest: Int
        /// Its session is about to be stored. From then on only the result of that ends it.
        var isSettling = false
        var claim: (fingerprint: [UInt8], verdict: Promise<CallbackVerdict>)?
        var endedAt: BootInstant?
        var renewal: Renewal?
        var resendAt: BootInstant?
        /// The provider has stated `resendAt`.
        var isResendLimitOfProvider = false
        var hasOlderMessage = false
        var attempts = 0
        var callers: Set<Int32> = []
        /// Long polls that are open, and when the last one ended or a caller last asked for it.
        var waiters = 0
        var watchedAt: BootInstant
        /// Why the last callback with its key was refused.
        var refusal: Reason?
        /// Fulfilled by the flow's end, and replaced after each refusal with another reason.
        var news = Promise<Void>()
        /// How many flows began before it. Used for the order, since two may begin within one tick of the clock.
        var place = 0
        let ended = Promise<Void>()

        /// True if it waits until the user reads a mail, and no result of it is being stored.
        var waitsForMail: Bool { flow.awaited.waitsForMail && !isSettling }
        var expiry: BrokerError {
            guard let refusal, case .flowExpired(let reason) = flow.expiry else { return flow.expiry }
            return .flowExpired(.both(reason, refusal))
        }
    }
    var entries: [String: Entry] = [:]
    var identifiers: [[UInt8]: String] = [:]
    private var ended: [(id: String, endedAt: BootInstant)] = []
    var starts: [AccountName: Start] = [:]
    var pages: [PageEntrance] = []
    private var begun = 0
    /// When the account's last sign-in succeeded. Refusals before that are over.
    private var signedInAt: [AccountName: BootInstant] = [:]
    private let callbackReceiver: CallbackReceiver
    let sessionManager: SessionManager
    nonisolated var clock: BrokerClock { sessionManager.clock }

    static let maxFlows = 16
    /// How long after a flow's end identical copies of its callback get the same verdict.
    static let repeatWindow: Duration = .seconds(5)
    /// A user who has declined is not asked again for this long, except by an explicit sign-in call.
    static let quietTime: Duration = .seconds(300)
    private static let memory: Duration = .seconds(600)
    /// The longest sleep toward a deadline: timers do not notice that a machine was suspended.
    private static let longestSleep: Duration = .seconds(30)
    /// How many ended flows are remembered at most, so that beginning and cancelling flows does not fill the memory.
    static let maxEnded = 256

    init(callbackReceiver: CallbackReceiver, sessionManager: SessionManager) {
        self.callbackReceiver = callbackReceiver
        self.sessionManager = sessionManager
    }

    // MARK: Beginning

    /// Registers a new flow. False if its reserved place was cancelled meanwhile. Then the flow is not registered.
    func begin(_ flow: Flow, fulfilling promise: Promise<Result<FlowView?, BrokerError>>) async -> Bool {
        for id in pendingIDs(of: flow.account.name) {
            guard let former = entries[id], former.waitsForMail else { continue }
            // A flow that waits for a mail goes on beside another one, unless the new one takes its place, or the
            // callbacks of the two could not be told apart.
            let isSame = former.flow.request.method == flow.request.method
            guard isSame || (former.flow.awaited.isKeyless && flow.awaited.isKeyless) else { continue }
            await finish(id, as: .cancelled)
        }
        guard let start = starts[flow.account.name], start.promise === promise else { return false }
        starts[flow.account.name] = nil
        var entry = Entry(flow: flow, interest: start.interest, callers: start.callers, watchedAt: clock.bootInstant)
        entry.resendAt = flow.firstResendAt
        entry.place = begun
        begun += 1
        entries[flow.id] = entry
        identifiers[flow.awaited.key] = flow.id
        sessionManager.work.startTimer { [clock] in
            while true {
                guard await self.isPending(flow.id) else { return }
                let remaining = flow.deadline - clock.bootInstant
                if remaining < .zero { break }
                let pause = min(remaining + .milliseconds(1), FlowRegistry.longestSleep)
                guard (try? await clock.sleep(pause)) != nil else { return }
            }
            await self.expire(flow.id)
        }
        if !flow.request.changesUser, !flow.request.startsAtOnce {
            sessionManager.record(.signInStarted(flow.account.name, method: flow.request.method))
        }
        promise.fulfil(.success(view(of: entry)))
        return true
    }

    /// Gives the reserved place back: the sign-in was done without a flow, or cannot begin.
    func conclude(
        _ account: AccountName, with error: BrokerError?, fulfilling promise: Promise<Result<FlowView?, BrokerError>>
    ) {
        if starts[account]?.promise === promise { starts[account] = nil }
        promise.fulfil(error.map { .failure($0) } ?? .success(nil))
    }

    // MARK: Ending

    /// The exchange has yielded a session. True if the flow is still wanted: from here on only ``finish(_:as:)`` ends
    /// it, so that no caller reads "cancelled" of a sign-in that succeeds.
    func settle(_ id: String) -> Bool {
        guard entries[id]?.status == .pending else { return false }
        entries[id]?.isSettling = true
        return true
    }

    func finish(_ id: String, as status: FlowView.Status) async {
        guard var entry = entries[id], entry.status == .pending else { return }
        entry.status = status
        entry.endedAt = clock.bootInstant
        ended.append((id, clock.bootInstant))
        entries[id] = entry
        if !entry.flow.request.changesUser {
            sessionManager.record(entry.flow.ending(as: status, after: clock.bootInstant - entry.flow.beganAt))
            // A caller that waits for the end then finds the account's error.
            switch status {
            case .failed(let error), .expired(let error):
                guard !entry.flow.request.concernsHeldUser else { break }
                await sessionManager.show(error, entry.flow.account.name, as: .signInFailed)
            case .pending, .completed, .cancelled: break
            }
        }
        let isExpired = if case .expired = status { true } else { false }
        if isExpired {
            // The provider may be asked about the client, which takes time. The ports are free before that.
            await closeEntrances(of: entry)
            await entry.flow.account.provider(with: sessionManager.tools).noteExpiry(of: entry.flow)
        }
        entry.ended.fulfil(())
        entry.news.fulfil(())
        if !isExpired { await closeEntrances(of: entry) }
    }

    private func closeEntrances(of entry: Entry) async {
        for address in entry.addresses { await close(address.url, of: address.account) }
    }

    /// A callback with the key of a pending flow was refused. The flow keeps waiting, and says why.
    func refuse(_ id: String, because reason: Reason) async {
        guard let entry = entries[id], entry.status == .pending, entry.refusal != reason else { return }
        let (news, account) = (entry.news, entry.flow.account.name)
        entries[id]?.refusal = reason
        entries[id]?.news = Promise()
        sessionManager.record(.callbackRefused(account, reason))
        await sessionManager.show(.invalidCallback(reason), account, as: .callbackRefused)
        news.fulfil(())
    }

    func close(_ address: String, of account: AccountName) async { await callbackReceiver.close(address, account) }

    func expire(_ id: String) async {
        // A callback that is being processed came in time.
        guard let entry = entries[id], entry.claim == nil else { return }
        await finish(id, as: .expired(entry.expiry))
    }

    /// Removes the interest of one caller. If none is left, or with `isForAll`, the flow is cancelled.
    func cancel(_ id: String, isForAll: Bool) async throws(BrokerError) -> FlowView {
        guard var entry = entries[id] else { throw .flowNotFound }
        if entry.status == .pending {
            entry.interest -= 1
            entries[id] = entry
            if isForAll || entry.interest <= 0, !entry.isSettling { await finish(id, as: .cancelled) }
        }
        return try view(id)
    }

    /// Cancels an account's pending flow, since the account's configuration has changed.
    func cancel(_ account: AccountName) async {
        let text = "The configuration of \(account) changed while its sign-in began. Start it again."
        starts.removeValue(forKey: account)?.promise.fulfil(.failure(.flowCancelled(.stated(text))))
        for id in pendingIDs(of: account) where entries[id]?.isSettling == false { await finish(id, as: .cancelled) }
    }

    /// A sign-in has succeeded: the account's other sign-ins and changes that wait for a mail are cancelled, and earlier
    /// refusals do not count any more.
    func noteSignIn(of account: AccountName) async {
        for id in pendingIDs(of: account) where entries[id]?.waitsForMail == true { await finish(id, as: .cancelled) }
        signedInAt[account] = clock.bootInstant
    }

    func forget() {
        let limit = clock.bootInstant - FlowRegistry.memory
        var count = 0
        for (id, endedAt) in ended {
            guard endedAt < limit || ended.count - count > FlowRegistry.maxEnded else { break }
            count += 1
            guard let entry = entries.removeValue(forKey: id) else { continue }
            for key in entry.keys { identifiers[key] = nil }
        }
        ended.removeFirst(count)
    }

    // Which sign-ins may begin: an account has one pending flow, beside those that wait for a mail. An equal request joins
    // it; a different one is a conflict, unless the pending one gives way. Everything is decided in one turn.

    enum Admission {
        case existing(FlowView)
        case joining(Promise<Result<FlowView?, BrokerError>>)
        /// The caller makes the flow, or says why not: ``begin(_:fulfilling:)``, ``conclude(_:with:fulfilling:)``.
        case begin(Promise<Result<FlowView?, BrokerError>>)
    }

    struct Start {
        let request: SignInRequest
        let promise: Promise<Result<FlowView?, BrokerError>>
        var interest: Int
        var callers: Set<Int32>
    }

    /// How long after its last caller stopped waiting a pending flow may be replaced by another sign-in.
    private static let abandonment: Duration = .seconds(30)

    /// Joins an equal pending sign-in, or reserves the account's place for a new one. A caller that is not interested
    /// waits for the flow but does not keep it pending. A different pending sign-in is a conflict unless it gives way.
    func admit(
        _ account: AccountName, _ request: SignInRequest, isInterested: Bool
    ) async throws(BrokerError) -> Admission {
        forget()
        let interest = isInterested ? 1 : 0
        let callers = Set([request.process].compactMap { $0 })
        if var start = starts[account] {
            if start.request == request {
                start.interest += interest
                start.callers.formUnion(callers)
                starts[account] = start
                return .joining(start.promise)
            }
            guard request.replaces else { throw conflict(account, with: start.request.method, age: .zero) }
        }
        var replaced: String?
        for id in pendingIDs(of: account) {
            guard var entry = entries[id], entry.flow.request == request.withoutSecrets else { continue }
            entry.interest += interest
            entry.callers.formUnion(callers)
            entry.watchedAt = clock.bootInstant
            entries[id] = entry
            return .existing(view(of: entry))
        }
        if let id = pendingIDs(of: account).first, let entry = entries[id] {
            guard givesWay(entry, to: request, isInterested: isInterested) else {
                let age = (clock.bootInstant - entry.flow.beganAt)
                throw conflict(account, with: entry.flow.request.method, age: age)
            }
            // A flow that waits for a mail goes on beside the new one.
            if !entry.flow.awaited.waitsForMail || request.replaces { replaced = id }
        }
        let active = entries.values.count { $0.status == .pending } + starts.count - (replaced == nil ? 0 : 1)
        guard active < FlowRegistry.maxFlows else {
            throw .conflict(
                .stated("\(FlowRegistry.maxFlows) sign-ins are pending already. Finish or cancel one of them."))
        }
        let start = Start(request: request, promise: Promise(), interest: interest, callers: callers)
        let former = starts.updateValue(start, forKey: account)
        former?.promise.fulfil(.failure(.flowCancelled(.stated("Another sign-in of \(account) took its place."))))
        if let replaced { await finish(replaced, as: .cancelled) }
        return .begin(start.promise)
    }

    /// True if a different sign-in replaces a pending flow: if its request says so, if the flow only waits for a mail
    /// (which may take an hour), or if a user asks and no caller waits for the flow any more.
    private func givesWay(_ entry: Entry, to request: SignInRequest, isInterested: Bool) -> Bool {
        guard !entry.isSettling else { return false }
        if request.replaces || entry.flow.awaited.waitsForMail { return true }
        // A caller that listens for events waits for the flow.
        let isWatched = entry.waiters > 0 || sessionManager.bus.hasListener(amongProcesses: entry.callers)
        return isInterested && entry.claim == nil && !isWatched
            && clock.bootInstant - entry.watchedAt >= FlowRegistry.abandonment
    }

    private func conflict(_ account: AccountName, with method: SignInMethod, age: Duration) -> BrokerError {
        .conflict(
            .anotherPending(account, method: method, age: age.wholeSeconds), cause: .signInPending(account))
    }

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
        // A flow that is ending is waited for too: its account's error and its provider's note come with the end.
        if entry.ended.value == nil, bound > .zero {
            entries[id]?.waiters += 1
            _ = await (endsAtRefusal ? entry.news : entry.ended).wait(atMost: bound)
            entries[id]?.waiters -= 1
            entries[id]?.watchedAt = clock.bootInstant
            if Task.isCancelled { throw .cancelled }
        }
        return try view(id)
    }

    func views() -> [FlowView] {
        forget()
        return entries.values.sorted { $0.place < $1.place }.map { view(of: $0) }
    }

    /// True if the user denied or cancelled a sign-in of the account a moment ago, and has not signed in since: only an
    /// explicit one may ask again.
    func wasRefused(_ account: AccountName) -> Bool {
        entries.values.contains { entry in
            guard entry.flow.account.name == account, !entry.flow.request.changesUser, let endedAt = entry.endedAt,
                clock.bootInstant - endedAt < FlowRegistry.quietTime, signedInAt[account].map({ endedAt >= $0 }) ?? true
            else { return false }
            switch entry.status {
            case .cancelled, .failed(.accessDenied): return true
            default: return false
            }
        }
    }

    func abandonedPage(of account: AccountName) -> (any AwaitedSignIn)? {
        let last = entries.values.filter { $0.flow.account.name == account && $0.endedAt != nil }
            .max { $0.place < $1.place }
        guard let last, last.claim == nil, last.refusal == nil else { return nil }
        switch last.status {
        case .cancelled, .expired: return last.flow.awaited
        case .pending, .completed, .failed: return nil
        }
    }

    func pending(_ account: AccountName) -> FlowView? {
        pendingIDs(of: account).first.flatMap { entries[$0] }.map { view(of: $0) }
    }

    func pending() -> [AccountName: FlowView] {
        let pending = entries.values.filter { $0.status == .pending }.sorted { $0.place > $1.place }
        return Dictionary(pending.map { ($0.flow.account.name, view(of: $0)) }) { first, _ in first }
    }

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
            redirectURI: flow.redirectURI, startedAt: flow.startedAt, expiresAt: flow.expiresAt,
            resendAfter: entry.resendAt.map { flow.startedAt + ($0 - flow.beganAt) })
        view.details = flow.awaited.details
        view.openAddresses = entry.entrances
        view.changesUser = flow.request.changesUser
        if entry.status == .pending { view.refusal = entry.refusal.map { .invalidCallback($0) } }
        view.providerHost = flow.providerHost
        view.displayName = flow.account.page.displayName
        return view
    }
}
