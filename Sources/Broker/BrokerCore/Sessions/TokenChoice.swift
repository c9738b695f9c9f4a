/// Which token of a session a caller gets: the one that is held, one that a refresh brings, or none.
struct TokenChoice: Sendable {
    let query: SessionQuery
    let account: Account
    let session: Session
    let now: BootInstant

    private var held: AccessToken? { query.token(in: session) }

    /// The token that is held, if it is valid long enough. Nil if a refresh comes first. Throws if no refresh can bring
    /// what is asked for.
    func beforeRefresh() throws(BrokerError) -> IssuedToken? {
        if let held, held.satisfies(minValid: query.minValid ?? SessionManager.defaultMinValid, at: now) {
            return issued(held)
        }
        guard !session.isRefreshable else { return nil }
        if let held = enough { return issued(held) }
        if query.key != .own, let own = session.tokens[.own], own.isValid(at: now) {
            throw .methodUnsupported(.session(.notDownscopable(account.name, advice: account.renewalAdvice)))
        }
        throw .sessionRanOut(account.name, advice: account.renewalAdvice)
    }

    /// The token after a refresh that did not fail.
    func afterRefresh() throws(BrokerError) -> IssuedToken {
        guard let held else { throw .signInRequired(account.name) }
        guard held.isValid(at: now) else {
            // If refreshes bring no ID token, only a sign-in does. An access token that has expired on arrival is the
            // provider's mistake.
            guard query.kind == .accessToken else { throw .signInRequired(account.name) }
            throw .provider(.invalidResponse(.session(.expiredToken)))
        }
        return issued(held)
    }

    /// The token although the refresh failed: nil if the caller asked for a longer validity, or none is valid.
    var despiteFailure: IssuedToken? { enough.map(issued) }

    /// The held token, if the caller named no validity and it has not expired.
    private var enough: AccessToken? {
        guard query.minValid == nil, let held, held.isValid(at: now) else { return nil }
        return held
    }

    private func issued(_ token: AccessToken) -> IssuedToken { IssuedToken(token, of: session, account) }
}

extension IssuedToken {
    init(_ token: AccessToken, of session: Session, _ account: Account) {
        self.init(token, of: session, account.name, shown: account.kind.shown(of: session))
    }
}

extension AccessToken {
    /// True if it has not expired, as far as is known.
    func isValid(at boot: BootInstant) -> Bool { remaining(at: boot) != .zero }
}
