/// Redeems the proof of a flow at the provider and stores the result. Then the flow is completed, or waits for the next
/// proof.
struct Redeemer: Sendable {
    let broker: Broker

    /// Claims the flow for what the user typed, and redeems it. If the flow cannot be claimed, it is left as it was.
    func verify(
        _ id: String, _ proof: Proof, _ kind: Proof.Kind, _ fingerprint: [UInt8]
    ) async throws(BrokerError) -> FlowView {
        var verdict: CallbackVerdict?
        repeat {
            _ = try await broker.flowRegistry.pendingFlow(id, awaiting: kind)
            switch await broker.flowRegistry.take(id, fingerprint) {
            case .granted(let promise):
                // The code is redeemed even if the caller disconnects.
                broker.work.start { promise.fulfil(await redeem(proof, of: id)) }
                verdict = await promise.wait()
            case .repeated(let promise): verdict = await promise.wait()
            case .busy(let promise):
                guard kind == .code else { throw .conflict(.flow(.anotherProof)) }
                guard await promise.wait() != nil else { throw .cancelled }
                continue
            case .ended: throw .flowEnded
            }
            guard verdict != nil else { throw .cancelled }
        } while verdict == nil
        let view = try await broker.flow(id)
        if case .failed(_, let error)? = verdict, view.status == .pending { throw error }
        return view
    }

    /// The same for the flow with this id, in its current state.
    func redeem(_ proof: Proof, of id: String) async -> CallbackVerdict {
        guard let flow = await broker.flowRegistry.entries[id]?.flow else { return .ended }
        return await redeem(proof, of: flow)
    }

    /// Redeems the proof of a flow. The caller has claimed the flow.
    func redeem(_ proof: Proof, of flow: Flow) async -> CallbackVerdict {
        do throws(RedemptionFailure) {
            let provider = flow.account.provider(with: broker.tools)
            let redemption = try await provider.redeem(proof, of: flow, in: broker.signInContext)
            return try await RedemptionFailure.mapping { () throws(BrokerError) in
                try await conclude(flow, redemption)
            }
        } catch {
            guard error.endsFlow else {
                await broker.flowRegistry.release(flow.id, isAttempt: false)
                return .failed(flow: flow.id, error.error)
            }
            if case .flowExpired = error.error {
                await broker.flowRegistry.finish(flow.id, as: .expired(error.error))
            } else {
                await broker.flowRegistry.finish(flow.id, as: .failed(error.error))
            }
            return .failed(flow: flow.id, error.error)
        }
    }

    /// Stores the result of redeeming the proof. The flow then ends or keeps waiting.
    private func conclude(_ flow: Flow, _ redemption: Redemption) async throws(BrokerError) -> CallbackVerdict {
        switch redemption {
        case .notGenuine(let reason):
            await broker.flowRegistry.release(flow.id, isAttempt: true)
            guard !flow.awaited.isKeyless else { return .ignored(reason) }
            await broker.flowRegistry.refuse(flow.id, because: reason)
            return .ignored(reason, flow: flow.id)
        case .waiting(let change):
            if let change { await broker.flowRegistry.change(flow.id, change) }
            await broker.flowRegistry.release(flow.id, isAttempt: false)
            return .noted(flow: flow.id)
        case .session(let session, let opening):
            do throws(BrokerError) {
                try await settle(flow)
                try await broker.open(session, for: flow.account, opening)
            } catch {
                await broker.giveBack(session, of: flow.account)
                throw error
            }
        case .change(let session, nil, let apply):
            do throws(BrokerError) {
                try await settle(flow)
            } catch {
                await broker.giveBack(session, of: flow.account)
                throw error
            }
            try await apply()
        case .change(_, let next?, let apply):
            let goesOn = await broker.flowRegistry.change(flow.id, next)
            try await apply()
            if goesOn {
                await broker.flowRegistry.release(flow.id, isAttempt: false)
                return .completed(flow: flow.id)
            }
        }
        await broker.flowRegistry.finish(flow.id, as: .completed)
        return .completed(flow: flow.id)
    }

    private func settle(_ flow: Flow) async throws(BrokerError) {
        guard await broker.flowRegistry.settle(flow.id) else {
            throw .flowCancelled(.flow(.cancelledBeforeEnd(flow.account.name)))
        }
    }
}

/// Which sign-ins may begin: an account has one pending flow, beside those that wait for a mail. An equal request joins
/// it; a different one is a conflict, unless the pending one gives way. Everything is decided in one turn.
extension FlowRegistry {
    /// How a sign-in begins.
    enum Admission {
        case existing(FlowView)
        /// An equal request of another caller is about to become a flow.
        case joining(Promise<Result<FlowView?, BrokerError>>)
        /// The caller must make the flow, or say why not, with ``begin(_:fulfilling:)`` or
        /// ``abandon(_:with:fulfilling:)``.
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
            throw .conflict(.flow(.tooManyPending(most: FlowRegistry.maxFlows)))
        }
        let start = Start(request: request, promise: Promise(), interest: interest, callers: callers)
        let former = starts.updateValue(start, forKey: account)
        former?.promise.fulfil(.failure(.flowCancelled(.flow(.replaced(account)))))
        if let replaced { await finish(replaced, as: .cancelled) }
        return .begin(start.promise)
    }

    /// True if a different sign-in replaces a pending flow: if its request says so, if the flow only waits for a mail
    /// (which may take an hour), or if a user asks and no caller waits for the flow any more.
    private func givesWay(_ entry: Entry, to request: SignInRequest, isInterested: Bool) -> Bool {
        guard !entry.isSettling else { return false }
        if request.replaces || entry.flow.awaited.waitsForMail { return true }
        return isInterested && entry.claim == nil && entry.waiters == 0 && !isHeard(entry.callers)
            && clock.bootInstant - entry.watchedAt >= FlowRegistry.abandonment
    }

    private func conflict(_ account: AccountName, with method: SignInMethod, age: Duration) -> BrokerError {
        .conflict(
            .flow(.anotherPending(account, method: method, age: age.wholeSeconds)), cause: .signInPending(account))
    }
}
