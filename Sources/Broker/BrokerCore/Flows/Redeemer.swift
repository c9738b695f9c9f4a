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
