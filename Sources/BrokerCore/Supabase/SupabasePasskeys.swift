internal import Cryptography
internal import HTTPMessages
internal import Secrets
public import StrictJSON
public import SupabaseAuth

/// Sign-ins by a passkey: the project asks a question that an app's authenticator answers. The question is answered
/// once; a wrong answer ends the flow, since the project has forgotten the question by then.
extension SupabaseFlowStart {
    func passkey() async throws(BrokerError) -> Broker.Beginning {
        let challenge = try await conversation.ask(
            project.passkeySignIn(captcha: fields.captcha), on: .signIn, SupabaseFlowStart.readChallenge)
        var awaited = try await redirected(isNeeded: false, message: nil)
        awaited.passkey = challenge
        // The project's clock is not ours: a challenge that seems to have ended already gets its usual time.
        let stated = challenge.expiresAt.map { $0 - broker.clock.now() } ?? 0
        let lifetime = stated > 0 ? min(stated, SupabaseFlow.passkeyTimeout) : SupabaseFlow.passkeyTimeout
        return .flow(
            Flow(
                .project(awaited), account: account, request: request.withoutSecrets, atMost: lifetime,
                by: broker.clock))
    }

    static func readChallenge(_ response: HTTPResponse) throws(SupabaseError) -> PasskeyChallenge {
        try PasskeyChallenge(reading: response)
    }
}

extension SupabaseFlow {
    /// Seconds: the server forgets a challenge then.
    static let passkeyTimeout = 300
}

extension FlowRegistry {
    /// The flow, if an authenticator's answer is awaited for it.
    func passkeyFlow(
        _ id: String
    ) throws(BrokerError) -> (flow: Flow, awaited: SupabaseFlow, challenge: PasskeyChallenge) {
        guard let entry = entries[id] else { throw .flowNotFound }
        guard entry.status == .pending else { throw .flowEnded }
        guard case .project(let awaited) = entry.flow.awaited, let challenge = awaited.passkey else {
            throw .conflict("This sign-in waits for no passkey.")
        }
        return (entry.flow, awaited, challenge)
    }
}

extension Broker {
    /// Finishes a sign-in with what an authenticator answered. Where the project could not be asked, the flow goes on
    /// waiting; its no ends the flow, which says why.
    public func verify(_ id: String, credential: JSONObject) async throws(BrokerError) -> FlowView {
        let (flow, awaited, challenge) = try await flowRegistry.passkeyFlow(id)
        guard let conversation = conversation(with: flow.account) else { throw .flowNotFound }
        let request = try SupabaseFlowStart.building { () throws(FieldError) in
            try conversation.project.passkeyGrant(
                challenge: challenge.id, credential: try PasskeyCredential(parsing: credential))
        }
        let verdict: CallbackVerdict?
        switch await flowRegistry.take(id, Digest.sha256(JSON.object(credential).serialized())) {
        case .granted(let promise):
            work.start { promise.fulfil(await redeem(request, flow, awaited, conversation)) }
            verdict = await promise.wait()
        case .repeated(let promise): verdict = await promise.wait()
        case .ended: throw .flowEnded
        case .ignored: throw .conflict("Another answer to this sign-in is being worked on.")
        }
        guard let verdict else { throw .cancelled }
        let view = try await self.flow(id)
        if case .failed(_, let error) = verdict, view.status == .pending { throw error }
        return view
    }

    private func redeem(
        _ request: HTTPRequest, _ flow: Flow, _ awaited: SupabaseFlow, _ conversation: SupabaseProvider
    ) async -> CallbackVerdict {
        do throws(BrokerError) {
            try await sessionManager.admitsSession(flow.account.name)
            let answer = try await conversation.ask(request, on: .signIn, Broker.readSession)
            do throws(BrokerError) {
                try await settle(flow, awaited, try conversation.inner(answer, on: .signIn), conversation)
            } catch {
                await flowRegistry.finish(flow.id, as: .failed(error))
                return .failed(flow: flow.id, error)
            }
            return .completed(flow: flow.id)
        } catch {
            // The project's no costs it the challenge; what never reached it may be sent again.
            if error.isAboutCredential {
                await flowRegistry.finish(flow.id, as: .failed(error))
            } else {
                await flowRegistry.release(flow.id)
            }
            return .failed(flow: flow.id, error)
        }
    }

    // MARK: The person's passkeys

    /// The passkeys of the person who is signed in.
    public func passkeys(_ name: AccountName) async throws(BrokerError) -> [Passkey] {
        let response = try await sessionManager.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.passkeys(bearer: token) },
                borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try PasskeyList(reading: response) }))
        return try Broker.reading(response) { response throws(SupabaseError) in
            try PasskeyList(reading: response).passkeys
        }
    }

    /// Asks what an authenticator needs to make a passkey. The project takes one answer, within five minutes.
    public func passkeyRegistration(_ name: AccountName) async throws(BrokerError) -> PasskeyChallenge {
        let response = try await sessionManager.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.passkeyRegistration(bearer: token) },
                apply: { response, _ throws(SupabaseError) in _ = try PasskeyChallenge(reading: response) }))
        return try Broker.reading(response, SupabaseFlowStart.readChallenge)
    }

    /// Adds the passkey that an authenticator has made.
    public func registerPasskey(
        _ name: AccountName, challenge: String, credential: JSONObject
    ) async throws(BrokerError) -> Passkey {
        let credential = try SupabaseFlowStart.building { () throws(FieldError) in
            try PasskeyCredential(parsing: credential)
        }
        let passkey = try await passkey(
            name,
            { project, token throws(FieldError) in
                try project.registerPasskey(challenge: challenge, credential: credential, bearer: token)
            })
        record(.passkeyRegistered(name, passkey: passkey.id))
        return passkey
    }

    /// Names a passkey.
    public func renamePasskey(
        _ name: AccountName, _ id: String, to title: String
    ) async throws(BrokerError) -> Passkey {
        try await passkey(
            name,
            { project, token throws(FieldError) in try project.renamePasskey(id, to: title, bearer: token) })
    }

    private func passkey(
        _ name: AccountName,
        _ request: @escaping @Sendable (SupabaseProject, Secret) throws(FieldError) -> HTTPRequest
    ) async throws(BrokerError) -> Passkey {
        let response = try await sessionManager.change(
            name,
            SupabaseOperation(
                request: request,
                apply: { response, _ throws(SupabaseError) in _ = try Passkey(reading: response) }))
        return try Broker.reading(response) { response throws(SupabaseError) in try Passkey(reading: response) }
    }

    /// Removes a passkey: nobody signs in by it any more. Sessions stay.
    public func removePasskey(_ name: AccountName, _ id: String) async throws(BrokerError) {
        _ = try await sessionManager.change(
            name,
            SupabaseOperation(request: { project, token throws(FieldError) in
                try project.removePasskey(id, bearer: token)
            }))
        record(.passkeyRemoved(name, passkey: id.lowercased()))
    }
}

extension BrokerError {
    /// The project has seen the credential: its challenge is spent.
    fileprivate var isAboutCredential: Bool {
        guard case .project(let problem) = self else { return false }
        return problem.providerCode != nil && problem.code != .rateLimited
    }
}
