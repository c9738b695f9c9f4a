internal import Cryptography
public import RingbackBase

extension Broker {
    public func flows() async -> [FlowView] {
        await renewLapsed(await flowRegistry.views().map(\.id))
        return await flowRegistry.views()
    }

    /// A flow, once it has left `pending`, a callback of it is refused, or the bound has passed.
    public func flow(_ id: String, waiting bound: Duration = .zero) async throws(BrokerError) -> FlowView {
        // A caller that waits for the end has the URL already, so it is not renewed.
        if bound <= .zero { await renewLapsed([id]) }
        return try await flowRegistry.view(id, waiting: bound, endsAtRefusal: true)
    }

    /// Records that one caller, or every caller, no longer waits for the flow.
    public func cancel(_ id: String, isForAll: Bool) async throws(BrokerError) -> FlowView {
        try await flowRegistry.cancel(id, isForAll: isForAll)
    }

    // Every proof is redeemed here: a callback from the listener, a scheme or the user's paste, what the user typed, a
    // provider's response. One that is not genuine changes nothing; the genuine one is redeemed once, for all callers.

    /// Takes a callback, in whatever way it came. `form` is the body if it was posted.
    ///
    /// - Parameter accounts: those whose flows it may complete, depending on who sent it and how; nil for all.
    /// - Parameter refusal: why the listener did not admit it. Then it completes nothing, and the flow shows the reason.
    public func receive(
        _ text: String, form: [UInt8]? = nil, for accounts: Set<AccountName>? = nil, refusal: Reason? = nil
    ) async -> CallbackVerdict {
        guard var arrival = try? Arrival(text, form: form) else { return .ignored(.stated("It is not a URL.")) }
        arrival.accounts = accounts
        if let refusal {
            return .ignored(refusal, flow: await flowRegistry.refuse(arrival, because: refusal))
        }
        var claim = await flowRegistry.claim(arrival)
        while case .busy(let verdict) = claim {
            // Any program that knows the key can send a code. A genuine code that arrives at the same time is not lost.
            guard await verdict.wait() != nil else { return .ignored(.callerDisconnected) }
            claim = await flowRegistry.claim(arrival)
        }
        switch claim {
        case .busy: return .ignored(.anotherCallback)
        case .decided(let verdict): return verdict
        case .repeated(let verdict): return await verdict.wait() ?? .ignored(.callerDisconnected)
        case .claimed(let flow, let verdict):
            // The user may close the browser's tab: the exchange goes on.
            work.start { [arrival] in
                verdict.fulfil(await Redeemer(broker: self).redeem(.callback(arrival), of: flow))
            }
            return await verdict.wait() ?? .ignored(.callerDisconnected)
        }
    }

    /// Redeems a code that the user typed, or the hash of a mail's link. A wrong one leaves the flow as it is.
    public func verify(
        _ id: String, code: Secret? = nil, tokenHash: Secret? = nil, origin: CodeOrigin = CodeOrigin()
    ) async throws(BrokerError) -> FlowView {
        let typed = TypedCode(code: code, linkHash: tokenHash, origin: origin)
        let text = (code?.revealedBytes() ?? []) + [0] + (tokenHash?.revealedBytes() ?? [])
        return try await Redeemer(broker: self).verify(id, .code(typed), .code, Digest.sha256(text))
    }

    /// Finishes a sign-in with an authenticator's response. The provider's error response ends the flow, an outage not.
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

    /// Every address at which a callback may arrive: those in the accounts' configuration, and those of the flows that
    /// are remembered. A flow keeps the address that it began with, including its key.
    public func redirectURIs() async -> (configured: Set<String>, ofFlows: Set<String>) {
        (await sessionManager.redirectURIs, await flowRegistry.redirectURIs)
    }

    /// True if one of these is the state or the key of a flow that is remembered, pending or not.
    public func remembersFlow(withAnyOf keys: some Sequence<String>) async -> Bool {
        await flowRegistry.hasFlow(withAnyOf: keys.map { Arrival.digest(of: $0) })
    }
}

extension FlowRegistry {
    var redirectURIs: Set<String> {
        Set(entries.values.flatMap { [$0.flow.redirectURI] + $0.requests.map(\.redirectURI) }).subtracting([""])
    }

    func hasFlow(withAnyOf keys: [[UInt8]]) -> Bool { keys.contains { identifiers[$0] != nil } }
}

/// A page that ends the user's session at the provider. `shown` is whose ID token is in the URL; nil for none.
public typealias EndSessionPage = (url: String, shown: IssuedToken?)

public struct EndSessionForm: Sendable {
    /// The URL names the user, so that the page need not ask.
    public let saysWho: Bool
    /// The URL may name the user by the ID token.
    public let maySayIDToken: Bool
}

public typealias EndingSession = (account: Account, session: Session?)

extension Broker {
    /// The session that a sign-out is about to end, read before it and without waiting: readers see none from then on.
    public func ending(of name: AccountName) async throws(BrokerError) -> EndingSession {
        (try await sessionManager.account(name), await sessionManager.held(name))
    }

    /// The page that ends the account's session at the provider, nil if the provider has none. Call this after the
    /// session here was closed: the provider may be slow to respond, and readers must not get the session meanwhile.
    ///
    /// - Parameters:
    ///   - saysWho: the URL names the user, so that the page need not ask.
    ///   - maySayIDToken: it may do so with the ID token.
    ///   - bound: on the wait for the provider's metadata.
    public func endSessionPage(
        of ending: EndingSession, saysWho: Bool, maySayIDToken: Bool, waitingAtMost bound: Duration = .seconds(8)
    ) async throws(BrokerError) -> EndSessionPage? {
        let provider = ending.account.provider(with: tools)
        let form = EndSessionForm(saysWho: saysWho, maySayIDToken: maySayIDToken)
        let asking = work.attempt { () throws(BrokerError) in
            try await provider.endSessionPage(of: ending.session, form)
        }
        return try await asking.get(atMost: bound)
    }

    // Sign-ins that fail before they have a flow are recorded like a failed flow, and the account shows the error.

    /// To be called before the caller gets its response, so that the account has the error by then.
    func reportFailure(
        of error: BrokerError, refusing request: SignInRequest, of name: AccountName, since began: BootInstant
    ) async {
        // Only a request with details is recorded. Without them the caller alone is told.
        guard request.details != nil else { return }
        recordDirect(name, request, since: began, .failed, error)
        if !request.concernsHeldUser, error.refusesSignIn {
            await sessionManager.show(error, name, as: .signInFailed)
        }
    }
}
