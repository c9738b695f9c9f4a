internal import BrokerCore
internal import RingbackBase
internal import SupabaseAuth

/// Confirms a change of an e-mail address or a phone number. If both addresses must confirm, the response to the first
/// code has no session; that to the second has a new one of the same user, which replaces the current one.
extension Redeeming {
    /// A request that redeems a code, and where the code was sent; nil for the hash of a link.
    typealias Confirmation = (request: SupabaseRequest<SessionResponse>, place: ContactChange.Place?)

    static func attempts(of change: ContactChange, _ typed: TypedCode) throws(FieldError) -> [Confirmation] {
        switch (typed.code, typed.linkHash) {
        case (let code?, nil):
            let digits = try OneTimeCode(parsing: code)
            return try typed.origin.choose(among: change.places).map { place throws(FieldError) in
                (try .verify(digits, for: place.purpose, of: place.contact), place)
            }
        case (nil, let hash?): return [(try .verify(tokenHash: hash, for: .emailChange), nil)]
        default: throw FieldError.codeOrLink
        }
    }

    /// If the code may have been sent to either of two addresses, both are tried in order.
    func code(_ typed: TypedCode, of change: ContactChange) async throws(RedemptionFailure) -> Redemption {
        let attempts = try await RedemptionFailure.mapping(endsFlow: false) { () throws(BrokerError) in
            let attempts = try SupabaseProvider.building(try Redeeming.attempts(of: change, typed))
            try await context.admitSession(flow.account.name)
            return attempts
        }
        var failure = BrokerError.flowEnded
        for attempt in attempts {
            let response: SessionResponse
            do throws(BrokerError) {
                response = try await provider.ask(attempt.request)
            } catch {
                failure = error.unquoting(typed.code, typed.linkHash)
                guard error.isWrongCode else { break }
                continue
            }
            // The code has been used. An error from here on ends the flow.
            return try await RedemptionFailure.mapping { () throws(BrokerError) in
                // True if another confirmation is needed.
                let isHalf = try SupabaseProvider.mapping(.signIn) { () throws(SupabaseError) in
                    if case .accepted = try response.outcome() { true } else { false }
                }
                if isHalf { return .waiting(SupabaseFlow.confirmed(attempt.place)) }
                let session = try provider.inner(response, on: .signIn)
                return try await changed(session, attempt.place?.purpose ?? .emailChange)
            }
        }
        throw RedemptionFailure(failure, endsFlow: false)
    }
}

extension SupabaseProvider {
    func resend(
        _ flow: Flow, captcha: Secret?, in context: SignInContext
    ) async throws(BrokerError) -> AwaitedChange? {
        guard let awaited = flow.awaited as? SupabaseFlow, let message = awaited.message else {
            throw .conflict(.noCodeAwaited)
        }
        if case .change(let change) = message { return try await resend(change, awaited, captcha, in: context) }
        try await send(awaited, captcha: captcha)
        return nil
    }

    func send(_ awaited: SupabaseFlow, captcha: Secret?) async throws(BrokerError) {
        guard let message = awaited.message else { throw .conflict(.noCodeAwaited) }
        try await ask(try message.request(link: awaited.link, captcha: captcha))
    }

    /// Sends the messages of a change again. The resend request needs the user's current address. For a user without
    /// one, the change itself is requested again.
    private func resend(
        _ change: ContactChange, _ awaited: SupabaseFlow, _ captcha: Secret?, in context: SignInContext
    ) async throws(BrokerError) -> AwaitedChange? {
        if change.email != nil {
            if let current = change.currentEmail {
                try await ask(try .resend(.emailChange, to: .email(current), link: awaited.link, captcha: captcha))
            } else {
                var again = change.asked
                again.phone = nil
                again.channel = nil
                try await context.requests(of: account.name).put(again, link: awaited.link)
            }
        }
        if change.phone != nil {
            if let current = change.currentPhone {
                try await ask(try .resend(.phoneChange, to: .phone(current), captcha: captcha))
            } else {
                var again = change.asked
                again.email = nil
                try await context.requests(of: account.name).put(again)
            }
        }
        // Both addresses must confirm again.
        return change.email == nil ? nil : SupabaseFlow.change { $0.confirmed = [] }
    }
}

extension SupabaseFlow {
    static func confirmed(_ place: ContactChange.Place?) -> AwaitedChange? {
        guard case .email(let address)? = place?.contact else { return nil }
        return change { $0.confirmed.insert(address) }
    }

    static func change(_ edit: @escaping @Sendable (inout ContactChange) -> Void) -> AwaitedChange {
        { awaited in
            guard let flow = awaited as? SupabaseFlow, case .change(var change)? = flow.message else { return awaited }
            edit(&change)
            return change.isDone ? nil : flow.awaiting(change)
        }
    }
}
