internal import BrokerCore
internal import HTTPMessages
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// How a change of an address or a number is confirmed. Where both addresses of a person must agree, the first code
/// yields nothing but the server's word for it, the second one a session: another one of the same person, which takes
/// the place of the one that is held. A wrong code leaves everything as it is.
extension Redeeming {
    /// A request that may redeem a code, and where that code would have come from; nil where a link's hash hides it.
    struct Attempt: Sendable {
        let request: HTTPRequest
        let place: ContactChange.Place?
    }

    static func attempts(
        of change: ContactChange, _ code: Secret?, _ tokenHash: Secret?, _ origin: CodeOrigin,
        _ project: SupabaseProject
    ) throws(FieldError) -> [Attempt] {
        switch (code, tokenHash) {
        case (let code?, nil):
            let digits = try OneTimeCode(parsing: code)
            var attempts: [Attempt] = []
            for place in try origin.choose(among: change.places) {
                let request = try project.verify(digits, for: place.purpose, of: place.contact)
                attempts.append(Attempt(request: request, place: place))
            }
            return attempts
        case (nil, let hash?):
            return [Attempt(request: try project.verify(tokenHash: hash, for: .emailChange), place: nil)]
        default: throw FieldError(field: "code", reason: "a code or a token_hash is needed, and not both")
        }
    }

    /// A code of a change of the user. Nobody says from which of two addresses it was copied: the server tells, one after
    /// the other.
    func code(_ typed: TypedCode, of change: ContactChange) async throws(RedemptionFailure) -> Redemption {
        let attempts = try await RedemptionFailure.mapping(endsFlow: false) { () throws(BrokerError) in
            let attempts = try SupabaseProvider.building { () throws(FieldError) in
                try Redeeming.attempts(of: change, typed.code, typed.linkHash, typed.origin, provider.project)
            }
            try await context.admitSession(flow.account.name)
            return attempts
        }
        var refusal = BrokerError.flowEnded
        for attempt in attempts {
            let answer: SessionResponse
            do throws(BrokerError) {
                answer = try await provider.ask(attempt.request, on: .signIn, SupabaseProvider.readSession)
            } catch {
                refusal = error.unquoting(typed.code, typed.linkHash)
                guard error.isWrongCode else { break }
                continue
            }
            // The code is spent: what goes wrong from here on ends the flow.
            return try await RedemptionFailure.mapping { () throws(BrokerError) in
                if try provider.isHalf(answer) { return .waiting(SupabaseFlow.confirmed(attempt.place)) }
                return try await changed(
                    try provider.inner(answer, on: .signIn), attempt.place?.purpose ?? .emailChange)
            }
        }
        throw RedemptionFailure(refusal, endsFlow: false)
    }
}

extension SupabaseProvider {
    func resend(
        _ flow: Flow, captcha: Secret?, in context: SignInContext
    ) async throws(BrokerError) -> AwaitedChange? {
        guard let awaited = flow.awaited as? SupabaseFlow, let message = awaited.message else {
            throw .conflict("This sign-in waits for no code.")
        }
        if case .change(let change) = message { return try await resend(change, awaited, captcha, in: context) }
        let request = try SupabaseProvider.building { () throws(FieldError) in
            try project.sending(message, link: awaited.link, captcha: captcha)
        }
        _ = try await ask(request, on: .signIn, SupabaseProvider.readMessage)
        return nil
    }

    /// Sends the messages of a change again. The request for that knows users by their present address; who has none yet
    /// asks for the change once more.
    private func resend(
        _ change: ContactChange, _ awaited: SupabaseFlow, _ captcha: Secret?, in context: SignInContext
    ) async throws(BrokerError) -> AwaitedChange? {
        let users = LaneRequests(sessions: context.sessions)
        if change.email != nil {
            if let current = change.currentEmail {
                try await resend(.emailChange, to: .email(current), awaited.link, captcha)
            } else {
                var again = change.asked
                again.phone = nil
                again.channel = nil
                _ = try await users.put(again, of: account.name, link: awaited.link)
            }
        }
        if change.phone != nil {
            if let current = change.currentPhone {
                try await resend(.phoneChange, to: .phone(current), .none, captcha)
            } else {
                var again = change.asked
                again.email = nil
                _ = try await users.put(again, of: account.name, link: .none)
            }
        }
        // Both addresses are asked anew.
        return change.email == nil ? nil : SupabaseFlow.change { $0.confirmed = [] }
    }

    private func resend(
        _ kind: SupabaseProject.Resending, to contact: Contact, _ link: MailLink, _ captcha: Secret?
    ) async throws(BrokerError) {
        let request = try SupabaseProvider.building { () throws(FieldError) in
            try project.resend(kind, to: contact, link: link, captcha: captcha)
        }
        _ = try await ask(request, on: .signIn, SupabaseProvider.readMessage)
    }
}

extension SupabaseFlow {
    /// One of two addresses has agreed.
    static func confirmed(_ place: ContactChange.Place?) -> AwaitedChange? {
        guard case .email(let address)? = place?.contact else { return nil }
        return change { $0.confirmed.insert(address) }
    }

    /// Changes what is to be confirmed. Nothing is left to wait for once all of it is.
    static func change(_ edit: @escaping @Sendable (inout ContactChange) -> Void) -> AwaitedChange {
        { awaited in
            guard let flow = awaited as? SupabaseFlow, case .change(var change)? = flow.message else { return awaited }
            edit(&change)
            return change.isDone ? nil : flow.awaiting(change)
        }
    }
}

extension SupabaseProvider {
    /// True for the server's word that a confirmation was taken and another one is awaited.
    fileprivate func isHalf(_ answer: SessionResponse) throws(BrokerError) -> Bool {
        do throws(SupabaseError) {
            if case .accepted = try answer.outcome() { return true }
            return false
        } catch {
            throw BrokerError(error, on: .signIn)
        }
    }
}
