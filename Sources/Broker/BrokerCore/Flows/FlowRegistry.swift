/// The pending sign-ins. A claim checks everything first and takes the flow in the same turn, so that a callback which
/// is not the genuine one neither consumes, nor aborts, nor completes anything.
actor FlowRegistry {
    struct Entry {
        var flow: Flow
        /// Further authorization requests for it, each with secrets of its own.
        var requests: [any AwaitedSignIn] = []
        var entrances: [FlowEntrance] = []
        var status = FlowView.Status.pending
        /// How many sign-in calls want it. When none is left, it is cancelled.
        var interest: Int
        /// Its session is about to be stored. From then on only the result of that ends it.
        var isSettling = false
        var claim: (fingerprint: [UInt8], verdict: Promise<CallbackVerdict>)?
        var endedAt: BootInstant?
        var renewal: Renewal?
        /// When another message may be sent.
        var resendAt: BootInstant?
        /// The provider has stated `resendAt`.
        var isResendLimitOfProvider = false
        /// Its message was sent again: links of older ones may still be followed.
        var hasOlderMessage = false
        /// Callbacks that turned out not to be the genuine one.
        var attempts = 0
        /// The processes that asked for it.
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
        /// The error of a flow that was not finished in time.
        var expiry: BrokerError {
            guard let refusal, case .flowExpired(let reason) = flow.expiry else { return flow.expiry }
            return .flowExpired(.both(reason, refusal))
        }
    }
    var entries: [String: Entry] = [:]
    var identifiers: [[UInt8]: String] = [:]
    /// The flows that have ended and are still readable, in the order of their ends.
    private var ended: [(id: String, endedAt: BootInstant)] = []
    var starts: [AccountName: Start] = [:]
    /// Entrances that belong to no flow, oldest first.
    var pages: [PageEntrance] = []
    private var begun = 0
    private let callbackReceiver: CallbackReceiver
    let clock: BrokerClock
    private let work: Work
    private let record: @Sendable (BrokerFact) -> Void
    /// Called for every sign-in that fails or expires, and for a refused callback of a pending one.
    private let onFailure: @Sendable (AccountName, BrokerEvent.Kind, BrokerError) async -> Void
    /// Called for every flow that expires.
    private let onExpiry: @Sendable (Flow) async -> Void
    /// True if one of these processes has an event stream open.
    let isHeard: @Sendable (Set<Int32>) -> Bool

    /// How many flows of all accounts may be pending.
    static let maxFlows = 16
    /// How long after a flow's end identical copies of its callback get the same verdict.
    static let repeatWindow: Duration = .seconds(5)
    /// A user who has declined is not asked again for this long, except by an explicit sign-in call.
    static let quietTime: Duration = .seconds(300)
    /// How long an ended flow stays readable.
    private static let memory: Duration = .seconds(600)
    /// The longest sleep toward a deadline: timers do not notice that a machine was suspended.
    private static let longestSleep: Duration = .seconds(30)
    /// How many ended flows are remembered at most, so that beginning and cancelling flows does not fill the memory.
    static let maxEnded = 256

    init(
        callbackReceiver: CallbackReceiver, clock: BrokerClock, work: Work,
        record: @escaping @Sendable (BrokerFact) -> Void,
        isHeard: @escaping @Sendable (Set<Int32>) -> Bool,
        onFailure: @escaping @Sendable (AccountName, BrokerEvent.Kind, BrokerError) async -> Void,
        onExpiry: @escaping @Sendable (Flow) async -> Void = { _ in }
    ) {
        self.callbackReceiver = callbackReceiver
        self.clock = clock
        self.work = work
        self.record = record
        self.isHeard = isHeard
        self.onFailure = onFailure
        self.onExpiry = onExpiry
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
        work.startTimer { [clock] in
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
            record(.signInStarted(flow.account.name, method: flow.request.method))
        }
        promise.fulfil(.success(view(of: entry)))
        return true
    }

    /// Gives the reserved place back.
    func abandon(
        _ account: AccountName, with error: BrokerError, fulfilling promise: Promise<Result<FlowView?, BrokerError>>
    ) {
        if starts[account]?.promise === promise { starts[account] = nil }
        promise.fulfil(.failure(error))
    }

    /// The sign-in is done without a flow.
    func conclude(_ account: AccountName, fulfilling promise: Promise<Result<FlowView?, BrokerError>>) {
        if starts[account]?.promise === promise { starts[account] = nil }
        promise.fulfil(.success(nil))
    }

    // MARK: Ending

    /// The exchange has yielded a session. True if the flow is still wanted: from here on only ``finish(_:as:)`` ends
    /// it, so that no caller reads "cancelled" of a sign-in that succeeds.
    func settle(_ id: String) -> Bool {
        guard entries[id]?.status == .pending else { return false }
        entries[id]?.isSettling = true
        return true
    }

    /// Ends a flow; a flow that has ended stays as it is.
    func finish(_ id: String, as status: FlowView.Status) async {
        guard var entry = entries[id], entry.status == .pending else { return }
        entry.status = status
        entry.endedAt = clock.bootInstant
        ended.append((id, clock.bootInstant))
        entries[id] = entry
        if !entry.flow.request.changesUser {
            record(entry.flow.ending(as: status, after: clock.bootInstant - entry.flow.beganAt))
            // A caller that waits for the end then finds the account's error.
            switch status {
            case .failed(let error), .expired(let error):
                guard !entry.flow.request.concernsHeldUser else { break }
                await onFailure(entry.flow.account.name, .signInFailed, error)
            case .pending, .completed, .cancelled: break
            }
        }
        let isExpired = if case .expired = status { true } else { false }
        if isExpired {
            // The provider may be asked about the client, which takes time. The ports are free before that.
            await closeEntrances(of: entry)
            await onExpiry(entry.flow)
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
        record(.callbackRefused(account, reason))
        await onFailure(account, .callbackRefused, .invalidCallback(reason))
        news.fulfil(())
    }

    func close(_ address: String, of account: AccountName) async { await callbackReceiver.close(address, account) }

    func expire(_ id: String) async {
        // A callback that is being processed came in time.
        guard let entry = entries[id], entry.claim == nil else { return }
        await finish(id, as: .expired(entry.expiry))
    }

    /// Removes the interest of one caller. If none is left, or with `isForAll`, the flow is cancelled. A flow that has
    /// ended stays as it is.
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
        starts.removeValue(forKey: account)?.promise.fulfil(
            .failure(.flowCancelled(.flow(.configurationChangedAtStart(account)))))
        for id in pendingIDs(of: account) where entries[id]?.isSettling == false { await finish(id, as: .cancelled) }
    }

    /// A sign-in has succeeded: the account's other sign-ins and changes that wait for a mail are cancelled.
    func endMails(of account: AccountName) async {
        for id in pendingIDs(of: account) where entries[id]?.waitsForMail == true { await finish(id, as: .cancelled) }
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
}
