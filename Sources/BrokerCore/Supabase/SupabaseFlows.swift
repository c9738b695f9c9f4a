internal import HTTPMessages
internal import OAuth
public import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// How flows at a Supabase project end: by a callback, or by a code that somebody types.
extension Broker {
    /// Nil if the callback has to do with no project.
    func receive(_ url: WebURL, fingerprint: [UInt8]) async -> CallbackVerdict? {
        let callback: SupabaseCallback
        do throws(SupabaseCallback.Failure) {
            callback = try SupabaseCallback(parsing: url)
        } catch {
            return nil
        }
        var claim = await flowRegistry.claim(callback, at: url, fingerprint: fingerprint)
        while case .busy(let verdict) = claim {
            // Whoever knows the key can send a code: the genuine one is not lost for coming beside it.
            guard await verdict.wait() != nil else { return .ignored("The caller went away.") }
            claim = await flowRegistry.claim(callback, at: url, fingerprint: fingerprint)
        }
        switch claim {
        case .none: return await flowRegistry.allowListHint(for: url).map { .ignored($0) }
        case .busy: return .ignored("Another callback of this sign-in is being worked on.")
        case .ignored(let reason): return .ignored(reason)
        case .noted(let flow): return .noted(flow: flow)
        case .outdated(let flow): return .outdated(flow: flow)
        case .ended: return .ended
        case .repeated(let verdict): return await verdict.wait() ?? .ignored("The caller went away.")
        case .claimed(let flow, let awaited, let verdict):
            work.start { verdict.fulfil(await complete(flow, awaited, callback)) }
            return await verdict.wait() ?? .ignored("The caller went away.")
        }
    }

    private func complete(
        _ flow: Flow, _ awaited: SupabaseFlow, _ callback: SupabaseCallback
    ) async -> CallbackVerdict {
        do throws(BrokerError) {
            let code: Secret
            switch callback.outcome {
            case .code(let value): code = value
            case .refusal(let refusal): throw BrokerError(.refused(refusal), on: .callback, of: flow.account.name)
            case .message(let text): return .ignored(text)
            }
            guard let conversation = conversation(with: flow.account), let pkce = awaited.pkce else {
                throw .methodUnsupported("\(flow.account.name) is at no project.")
            }
            try await sessionManager.admitsSession(flow.account.name)
            let answer: SessionResponse
            do throws(BrokerError) {
                answer = try await conversation.ask(
                    conversation.project.codeGrant(code: code, verifier: pkce.verifier), on: .callback,
                    Broker.readSession)
            } catch {
                let failure = error.unquoting(code, pkce.verifier)
                guard failure.isOfAnotherFlow else { throw failure }
                // Whoever knows the key can send a code; only PKCE tells whose it is. The genuine one may still come.
                await flowRegistry.release(flow.id)
                return .ignored("Its code is not of this sign-in, or was used before.")
            }
            try await settle(flow, awaited, try conversation.inner(answer, on: .callback), conversation)
            return .completed(flow: flow.id)
        } catch {
            await flowRegistry.finish(flow.id, as: .failed(error))
            return .failed(flow: flow.id, error)
        }
    }

    func conversation(with account: Account) -> SupabaseProvider? {
        Provider(account: account, http: http, directory: directory, clock: clock).asProject
    }

    static func readSession(_ response: HTTPResponse) throws(SupabaseError) -> SessionResponse {
        try SessionResponse(reading: response)
    }

    func settle(
        _ flow: Flow, _ awaited: SupabaseFlow, _ fresh: SupabaseSession, _ conversation: SupabaseProvider
    ) async throws(BrokerError) {
        if awaited.purpose == .change { return try await settleChange(flow, .emailChange, fresh, conversation) }
        var session = try await conversation.session(
            fresh, keepingProviderToken: awaited.keepsProviderToken,
            isEphemeral: flow.request.project?.isPersistent == false)
        // What the mail was sent for is known here, whatever the token says of it.
        if awaited.purpose == .recovery, !session.isRecovery { session.project?.methods.append("recovery") }
        guard await flowRegistry.settle(flow.id) else {
            endUnheld(session, of: flow.account)
            throw .flowCancelled("The sign-in of \(flow.account.name) was withdrawn before it was done.")
        }
        if awaited.purpose == .link {
            try await succeed(session, flow.account)
        } else {
            do throws(BrokerError) {
                try await open(session, for: flow.account, switchingSubject: flow.request.switchesSubject)
            } catch {
                endUnheld(session, of: flow.account)
                throw error
            }
        }
        await flowRegistry.finish(flow.id, as: .completed)
    }

    // MARK: Codes

    /// Redeems a code that somebody typed, or the hash of a mail's link. A wrong one leaves the flow as it is.
    ///
    /// - Parameter origin: which of several messages it was in; only changes of the user have more than one.
    public func verify(
        _ id: String, code: Secret? = nil, tokenHash: Secret? = nil, origin: CodeOrigin = CodeOrigin()
    ) async throws(BrokerError) -> FlowView {
        let (flow, awaited, message) = try await flowRegistry.messageFlow(id)
        guard let conversation = conversation(with: flow.account) else { throw .flowNotFound }
        if case .change(let change) = message {
            return try await confirm(flow, change, code, tokenHash, origin, conversation)
        }
        if let field = origin.field { throw .invalid(field: field, reason: "this flow sent one message only") }
        let project = conversation.project
        let request = try SupabaseFlowStart.building { () throws(FieldError) in
            switch (code, tokenHash) {
            case (let code?, nil):
                return try project.verify(
                    try OneTimeCode(parsing: code), for: message.purpose,
                    of: try SupabaseFlowStart.required(message.contact, "code"))
            case (nil, let hash?): return try project.verify(tokenHash: hash, for: message.purpose)
            default: throw FieldError(field: "code", reason: "a code or a token_hash is needed, and not both")
            }
        }
        let redeeming = work.start { () -> Result<Void, BrokerError> in
            do throws(BrokerError) {
                try await sessionManager.admitsSession(flow.account.name)
                let answer = try await conversation.ask(request, on: .signIn, Broker.readSession)
                do throws(BrokerError) {
                    try await settle(flow, awaited, try conversation.inner(answer, on: .signIn), conversation)
                } catch {
                    // The code is spent: nothing can come of this flow any more.
                    await flowRegistry.finish(flow.id, as: .failed(error))
                }
                return .success(())
            } catch {
                return .failure(error.unquoting(code, tokenHash))
            }
        }
        guard let result = await redeeming.wait() else { throw .cancelled }
        try result.get()
        return try await self.flow(id)
    }

    private func confirm(
        _ flow: Flow, _ change: ContactChange, _ code: Secret?, _ tokenHash: Secret?, _ origin: CodeOrigin,
        _ conversation: SupabaseProvider
    ) async throws(BrokerError) -> FlowView {
        let redemptions = try SupabaseFlowStart.building { () throws(FieldError) in
            try Broker.redemptions(of: change, code, tokenHash, origin, conversation.project)
        }
        let redeeming = work.start { () -> Result<Void, BrokerError> in
            do throws(BrokerError) {
                try await sessionManager.admitsSession(flow.account.name)
                return .success(try await redeem(redemptions, of: flow, conversation))
            } catch {
                return .failure(error.unquoting(code, tokenHash))
            }
        }
        guard let result = await redeeming.wait() else { throw .cancelled }
        try result.get()
        return try await self.flow(flow.id)
    }

    /// Sends the message of a flow again, not before its `resend_after`.
    public func resend(_ id: String, captcha: Secret? = nil) async throws(BrokerError) -> FlowView {
        let (flow, awaited, message) = try await flowRegistry.messageFlow(id)
        guard let conversation = conversation(with: flow.account) else { throw .flowNotFound }
        if case .change(let change) = message { return try await resend(change, of: flow, awaited, captcha) }
        let request = try SupabaseFlowStart.building { () throws(FieldError) in
            try conversation.project.sending(message, link: awaited.link, captcha: captcha)
        }
        try await flowRegistry.admitResending(id)
        do throws(BrokerError) {
            _ = try await conversation.ask(request, on: .signIn, SupabaseFlowStart.readMessage)
        } catch {
            // Nothing was sent: the wait is the server's, if it asks for one.
            await flowRegistry.postponeResending(id, by: error.retryAfter ?? 0)
            throw error
        }
        return try await self.flow(id)
    }
}

extension BrokerError {
    /// An error that came with the callback: the person's no has a word of its own.
    init(_ error: SupabaseError, on occasion: SupabaseProblem.Occasion, of account: AccountName) {
        if case .refused(let refusal) = error, refusal.code == "access_denied" {
            self = .accessDenied(account)
        } else {
            self.init(error, on: occasion)
        }
    }

    /// The server does not know the code, or it is another challenge's: neither ends the flow that it was sent to.
    var isOfAnotherFlow: Bool {
        guard case .project(let problem) = self else { return false }
        return ["bad_code_verifier", "flow_state_not_found"].contains(problem.providerCode)
    }
}
