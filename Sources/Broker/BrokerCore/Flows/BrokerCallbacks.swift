internal import Cryptography
internal import HTTPMessages
public import Secrets
public import StrictJSON

/// Takes callbacks from the loopback listener, from custom schemes and from the user's paste, and redeems every proof:
/// a callback, what the user typed, a provider's response. A proof that is not genuine changes nothing. The genuine
/// proof of a pending flow is redeemed once, for all callers that wait for it.
extension Broker {
    /// Takes a callback, in whatever way it came. `form` is the body if it was posted.
    ///
    /// - Parameter accounts: those whose flows it may complete, depending on who sent it and how; nil for all.
    /// - Parameter refusal: why the listener did not admit it. Then it completes nothing, and the flow shows the reason.
    public func receive(
        _ text: String, form: [UInt8]? = nil, for accounts: Set<AccountName>? = nil, refusal: FlowReason? = nil
    ) async -> CallbackVerdict {
        guard var arrival = try? Arrival(text, form: form) else { return .ignored(.flow(.notURL)) }
        arrival.accounts = accounts
        guard let refusal else { return await receive(arrival) }
        return .ignored(.flow(refusal), flow: await flowRegistry.refuse(arrival, because: refusal))
    }

    private func receive(_ arrival: Arrival) async -> CallbackVerdict {
        var claim = await flowRegistry.claim(arrival)
        while case .busy(let verdict) = claim {
            // Any program that knows the key can send a code. A genuine code that arrives at the same time is not lost.
            guard await verdict.wait() != nil else { return .ignored(.flow(.callerDisconnected)) }
            claim = await flowRegistry.claim(arrival)
        }
        switch claim {
        case .busy: return .ignored(.flow(.anotherCallback))
        case .ignored(let reason): return .ignored(reason)
        case .refused(let flow, let reason): return .ignored(reason, flow: flow)
        case .noted(let flow): return .noted(flow: flow)
        case .outdated(let flow): return .outdated(flow: flow)
        case .ended: return .ended
        case .expired(let flow): return .expired(flow: flow)
        case .repeated(let verdict): return await verdict.wait() ?? .ignored(.flow(.callerDisconnected))
        case .claimed(let flow, let verdict):
            // The user may close the browser's tab: the exchange goes on.
            work.start { verdict.fulfil(await Redeemer(broker: self).redeem(.callback(arrival), of: flow)) }
            return await verdict.wait() ?? .ignored(.flow(.callerDisconnected))
        }
    }

    /// Redeems a code that the user typed, or the hash of a mail's link. A wrong one leaves the flow as it is.
    ///
    /// - Parameter origin: which of several messages it was in; only changes of the user have more than one.
    public func verify(
        _ id: String, code: Secret? = nil, tokenHash: Secret? = nil, origin: CodeOrigin = CodeOrigin()
    ) async throws(BrokerError) -> FlowView {
        let typed = TypedCode(code: code, linkHash: tokenHash, origin: origin)
        let text = (code?.revealedBytes() ?? []) + [0] + (tokenHash?.revealedBytes() ?? [])
        return try await Redeemer(broker: self).verify(id, .code(typed), .code, Digest.sha256(text))
    }

    /// Finishes a sign-in with an authenticator's response. If the provider cannot be reached, the flow keeps waiting.
    /// An error response of the provider ends the flow with that error.
    public func verify(_ id: String, credential: JSONObject) async throws(BrokerError) -> FlowView {
        try await Redeemer(broker: self).verify(
            id, .credential(credential), .credential, Digest.sha256(JSON.object(credential).serialized()))
    }

    /// Sends the message of a flow again, not before its `resend_after`.
    public func resend(_ id: String, captcha: Secret? = nil) async throws(BrokerError) -> FlowView {
        let flow = try await flowRegistry.pendingFlow(id, awaiting: .code)
        try await flowRegistry.admitResending(id)
        do throws(BrokerError) {
            let provider = flow.account.provider(with: tools)
            if let change = try await provider.resend(flow, captcha: captcha, in: signInContext) {
                await flowRegistry.change(id, change)
            }
        } catch {
            // Nothing was sent. The caller may try again at once, or after the time that the provider asks for.
            await flowRegistry.postponeResending(id, by: .seconds(error.retryAfter ?? 0))
            throw error
        }
        return try await self.flow(id)
    }

    /// Closes what was opened for the callback of a flow that has ended.
    func close(_ flow: Flow) async {
        if !flow.redirectURI.isEmpty { await callbackReceiver.close(flow.redirectURI, flow.account.name) }
        if let page = flow.awaited.ownPage { await callbackReceiver.close(page, flow.account.name) }
        if let upstream = flow.awaited.upstream { _ = try? await flowRegistry.cancel(upstream.flow, isForAll: false) }
    }
}
