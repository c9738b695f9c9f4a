internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

/// Redeems the proof that completes a flow at a Supabase project.
struct Redeeming: Sendable {
    let provider: SupabaseProvider
    let flow: Flow
    let awaited: SupabaseFlow
    let context: SignInContext

    func callback(_ arrival: Arrival) async throws(RedemptionFailure) -> Redemption {
        try await RedemptionFailure.mapping { () throws(BrokerError) in
            let callback: SupabaseCallback
            do throws(SupabaseCallback.Failure) {
                callback = try SupabaseCallback(parsing: arrival.url)
            } catch {
                throw .invalidCallback(Reason(error))
            }
            let code: Secret
            switch callback.outcome {
            case .code(let value): code = value
            case .error(let errorResponse):
                throw BrokerError(.refused(errorResponse), on: .callback, of: flow.account.name)
            case .message(let text): return .notGenuine(.stated(text))
            }
            guard let pkce = awaited.pkce else { throw .conflict(.otherResponseAwaited) }
            try await context.admitSession(flow.account.name)
            let response: SessionResponse
            do throws(BrokerError) {
                response = try await exchange(try provider.http(.code(code, verifier: pkce.verifier)))
            } catch {
                let failure = error.unquoting(code, pkce.verifier)
                guard failure.isOfAnotherFlow else { throw failure }
                // Any program that knows the flow's key can send a code. By PKCE this code belongs to another flow, so
                // this flow goes on: the genuine code may still arrive.
                return .notGenuine(.stated("Its code belongs to another sign-in or was used before."))
            }
            return try await redemption(try provider.inner(response, on: .callback))
        }
    }

    private func exchange(_ request: HTTPRequest) async throws(BrokerError) -> SessionResponse {
        try await CodeExchange.run(
            isSpent: \.isOfAnotherFlow,
            { () throws(CodeExchange.Failure) in
                let response: HTTPResponse
                do throws(BrokerError) {
                    response = try await provider.send(request)
                } catch {
                    throw CodeExchange.Failure(sending: error, to: request.host)
                }
                do throws(BrokerError) {
                    return try SupabaseProvider.read(response, on: .callback)
                } catch {
                    throw CodeExchange.Failure(response: error)
                }
            })
    }

    /// A wrong code leaves the flow as it is. After a code was accepted, any error ends the flow.
    func code(_ typed: TypedCode) async throws(RedemptionFailure) -> Redemption {
        guard let message = awaited.message else {
            throw RedemptionFailure(.conflict(.noCodeAwaited), endsFlow: false)
        }
        if case .change(let change) = message { return try await code(typed, of: change) }
        let response = try await RedemptionFailure.mapping(endsFlow: false) { () throws(BrokerError) in
            if let field = typed.origin.field {
                throw .invalid(field: field, reason: .stated("this flow sent only one message"))
            }
            let request = try SupabaseProvider.building(try Redeeming.request(for: message, typed))
            try await context.admitSession(flow.account.name)
            do throws(BrokerError) {
                return try await provider.ask(request)
            } catch {
                throw error.unquoting(typed.code, typed.linkHash)
            }
        }
        return try await adopt(response)
    }

    private static func request(
        for message: SupabaseFlow.Message, _ typed: TypedCode
    ) throws(FieldError) -> SupabaseRequest<SessionResponse> {
        switch (typed.code, typed.linkHash) {
        case (let code?, nil):
            let contact = try FlowStart.required(message.contact, "code")
            return try .verify(try OneTimeCode(parsing: code), for: message.purpose, of: contact)
        case (nil, let hash?): return try .verify(tokenHash: hash, for: message.purpose)
        default: throw FieldError.codeOrLink
        }
    }

    /// A rejected credential uses the challenge up and ends the flow. A request that did not arrive may be sent again.
    func credential(_ credential: JSONObject) async throws(RedemptionFailure) -> Redemption {
        guard let challenge = awaited.passkey else {
            let reason = Reason.stated("This sign-in does not wait for a passkey.")
            throw RedemptionFailure(.conflict(reason), endsFlow: false)
        }
        let response: SessionResponse
        do throws(BrokerError) {
            let request: SupabaseRequest<SessionResponse> = try SupabaseProvider.building(
                try .passkey(challenge: challenge.id, credential: try PasskeyCredential(parsing: credential)))
            try await context.admitSession(flow.account.name)
            response = try await provider.ask(request)
        } catch {
            throw RedemptionFailure(error, endsFlow: error.isAboutCredential)
        }
        return try await adopt(response)
    }

    func upstream() async throws(RedemptionFailure) -> Redemption {
        do throws(BrokerError) {
            guard let upstream = awaited.upstream, let name = awaited.upstreamProvider else {
                throw .conflict(.otherResponseAwaited)
            }
            try await context.admitSession(flow.account.name)
            guard let grant = try await provider.idTokenGrant(of: upstream.account, name, in: context) else {
                let text = "\(upstream.account) has no ID token that the project can check."
                throw .provider(.invalidResponse(.stated(text)))
            }
            let response = try await provider.ask(grant)
            return try await redemption(try provider.inner(response, on: .signIn))
        } catch {
            throw RedemptionFailure(error.withoutWords)
        }
    }

    // MARK: Results

    private func adopt(_ response: SessionResponse) async throws(RedemptionFailure) -> Redemption {
        try await RedemptionFailure.mapping { () throws(BrokerError) in
            try await redemption(try provider.inner(response, on: .signIn))
        }
    }

    private func redemption(_ fresh: SupabaseSession) async throws(BrokerError) -> Redemption {
        if awaited.purpose == .change { return try await changed(fresh, .emailChange) }
        var session = try await provider.session(
            fresh, keepingProviderToken: awaited.keepsProviderToken,
            isEphemeral: flow.request.project?.isPersistent == false)
        // The flow knows that the mail was a recovery mail, even if the token's claims do not say it.
        if awaited.purpose == .recovery, !session.isRecovery { session.project?.methods.append("recovery") }
        guard awaited.purpose == .link else { return .session(session, provider.opening(session, flow.request)) }
        let linked = session
        return .change(session, next: nil) { [provider, context] () throws(BrokerError) in
            try await provider.succeed(linked, in: context)
        }
    }

    /// One of the changes of a user is complete; the last one ends the flow.
    func changed(_ fresh: SupabaseSession, _ purpose: MessagePurpose) async throws(BrokerError) -> Redemption {
        let session = try await provider.session(
            fresh, keepingProviderToken: false, isEphemeral: flow.request.project?.isPersistent == false)
        let next = SupabaseFlow.change { $0.finish(purpose) }
        return .change(session, next: next) { [provider, context] () throws(BrokerError) in
            try await provider.succeed(session, in: context)
        }
    }
}
