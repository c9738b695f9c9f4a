/// Redeems the proof of a flow, which its caller has claimed, at the provider, and stores the result.
struct Redeemer: Sendable {
    let broker: Broker

    /// Claims the flow for what the user typed, and redeems it. If the flow cannot be claimed, it is left as it was.
    func verify(
        _ id: String, _ proof: Proof, _ kind: Proof.Kind, _ fingerprint: [UInt8]
    ) async throws(BrokerError) -> FlowView {
        var claim = try await broker.flowRegistry.claim(id, awaiting: kind, fingerprint)
        while case .busy(let other) = claim {
            guard kind == .code else {
                throw .conflict(.stated("Another response to this sign-in is being processed."))
            }
            guard await other.wait() != nil else { throw .cancelled }
            claim = try await broker.flowRegistry.claim(id, awaiting: kind, fingerprint)
        }
        let promise: Promise<CallbackVerdict>
        switch claim {
        case .claimed(let flow, let own):
            // The code is redeemed even if the caller disconnects.
            broker.work.start { own.fulfil(await redeem(proof, of: flow)) }
            promise = own
        case .repeated(let other), .busy(let other): promise = other
        case .decided: throw .flowEnded
        }
        guard let verdict = await promise.wait() else { throw .cancelled }
        let view = try await broker.flow(id)
        if case .failed(_, let error) = verdict, view.status == .pending { throw error }
        return view
    }

    func redeem(_ proof: Proof, of flow: Flow) async -> CallbackVerdict {
        do throws(RedemptionFailure) {
            let provider = flow.account.provider(with: broker.tools)
            let redemption = try await provider.redeem(proof, of: flow, in: broker.signInContext)
            return try await RedemptionFailure.mapping { () throws(BrokerError) in
                try await conclude(flow, redemption)
            }
        } catch {
            if !error.endsFlow {
                await broker.flowRegistry.release(flow.id)
            } else if case .flowExpired = error.error {
                await broker.flowRegistry.finish(flow.id, as: .expired(error.error))
            } else {
                await broker.flowRegistry.finish(flow.id, as: .failed(error.error))
            }
            return .failed(flow: flow.id, error.error)
        }
    }

    private func conclude(_ flow: Flow, _ redemption: Redemption) async throws(BrokerError) -> CallbackVerdict {
        switch redemption {
        case .notGenuine(let reason):
            let isShown = !flow.awaited.isKeyless
            await broker.flowRegistry.reject(flow.id, because: reason, isShown: isShown)
            return .ignored(reason, flow: isShown ? flow.id : nil)
        case .waiting(let change):
            await broker.flowRegistry.release(flow.id, changing: change)
            return .noted(flow: flow.id)
        case .session(let session, let opening):
            try await settle(flow, endingOnFailure: session) { () throws(BrokerError) in
                try await broker.open(session, for: flow.account, opening)
            }
        case .change(let session, nil, let apply):
            try await settle(flow, endingOnFailure: session)
            try await apply()
        case .change(_, let next?, let apply):
            let goesOn = await broker.flowRegistry.change(flow.id, next)
            try await apply()
            if goesOn {
                await broker.flowRegistry.release(flow.id)
                return .completed(flow: flow.id)
            }
        }
        await broker.flowRegistry.finish(flow.id, as: .completed)
        return .completed(flow: flow.id)
    }

    /// Settles the flow, and stores its session. The provider ends a session that is not stored.
    private func settle(
        _ flow: Flow, endingOnFailure session: Session, _ store: () async throws(BrokerError) -> Void = {}
    ) async throws(BrokerError) {
        do throws(BrokerError) {
            guard await broker.flowRegistry.settle(flow.id) else {
                throw .flowCancelled(
                    .stated("The sign-in of \(flow.account.name) was cancelled before it was complete."))
            }
            try await store()
        } catch {
            await broker.endRefused(session, of: flow.account)
            throw error
        }
    }
}
