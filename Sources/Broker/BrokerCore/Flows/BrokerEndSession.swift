/// A page that ends the user's session at the provider, for a browser to open.
public struct EndSessionPage: Sendable {
    public let url: String
    /// Whose ID token is in the URL; nil if there is none in it.
    public let shown: IssuedToken?

    public init(url: String, shown: IssuedToken?) {
        self.url = url
        self.shown = shown
    }
}

/// What the URL of an end-session page may contain.
public struct EndSessionForm: Sendable {
    /// The URL names the user, so that the page need not ask.
    public let saysWho: Bool
    /// The URL may name the user by the ID token.
    public let maySayIDToken: Bool
}

/// An account as it was before a sign-out.
public struct EndingSession: Sendable {
    let account: Account
    let session: Session?
}

extension Broker {
    /// The session that a sign-out is about to end. It is read before the sign-out, since it is not known afterwards,
    /// and without waiting, since readers see no session from then on.
    public func ending(of name: AccountName) async throws(BrokerError) -> EndingSession {
        EndingSession(account: try await sessionManager.account(name), session: await sessionManager.held(name))
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
}

extension SessionManager {
    /// The session that readers may see; nil without one, or while it is being closed.
    func held(_ name: AccountName) -> Session? { (try? readable(name)) ?? nil }
}
