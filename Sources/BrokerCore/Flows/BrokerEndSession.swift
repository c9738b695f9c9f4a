internal import Cryptography
internal import OAuth
internal import StrictJSON

/// A page that ends the person's session at the provider, for a browser to open.
public struct EndSessionPage: Sendable {
    public let url: String
    /// Whose ID token is in the URL; nil if there is none in it.
    public let shown: IssuedToken?
}

/// An account as it was before a sign-out.
public struct EndingSession: Sendable {
    let account: Account
    let session: Session?
}

extension Broker {
    /// Whose session a sign-out is about to end. Taken before it is closed, for after that nobody knows; taken at once,
    /// for readers stop at once.
    public func ending(of name: AccountName) async throws(BrokerError) -> EndingSession {
        EndingSession(account: try await sessionManager.account(name), session: await sessionManager.held(name))
    }

    /// The page that ends the account's session at the provider, nil if the provider has none. To be asked for when the
    /// session here is closed: the provider may take its time, and readers must not have it.
    ///
    /// - Parameters:
    ///   - saysWho: the URL names the person, so that the page need not ask.
    ///   - maySayIDToken: it may do so with the ID token.
    ///   - bound: on the wait for the provider's metadata.
    public func endSessionPage(
        of ending: EndingSession, saysWho: Bool, maySayIDToken: Bool, waitingAtMost bound: Duration = .seconds(8)
    ) async throws(BrokerError) -> EndSessionPage? {
        let (account, session) = (ending.account, ending.session)
        let name = account.name
        let provider = Provider(account: account, http: http, directory: directory, clock: clock)
        let asking = work.start { () -> Result<ProviderMetadata, BrokerError> in
            do throws(BrokerError) {
                return .success(try await provider.metadata())
            } catch {
                return .failure(error)
            }
        }
        guard let metadata = await asking.wait(atMost: bound) else {
            throw Task.isCancelled ? .cancelled : .timedOut
        }
        guard let endpoint = try metadata.get().endSessionEndpoint else { return nil }
        var hint: Session.Identity?
        var isAtHome = false
        if saysWho, let session { isAtHome = try provider.mayReceiveTokens(endpoint, of: session) }
        if isAtHome, maySayIDToken { hint = session?.identity }
        let request = EndSessionRequest(
            endpoint: endpoint, clientID: account.clientID, idTokenHint: hint?.token,
            logoutHint: isAtHome ? session?.loginName : nil, redirectURI: account.postLogoutRedirectURI,
            state: RandomToken.base64URL(bits: 128))
        guard request.showsIDToken, let session, let hint else { return EndSessionPage(url: request.url(), shown: nil) }
        let token = AccessToken(
            value: hint.token, type: "id_token", scope: nil, expiry: hint.expiry, lifetime: hint.lifetime)
        return EndSessionPage(
            url: request.url(),
            shown: IssuedToken(token, of: session, name))
    }
}

extension SessionManager {
    /// The session that readers may see; nil without one, or while it is being closed.
    func held(_ name: AccountName) -> Session? { (try? readable(name)) ?? nil }
}

extension Session {
    /// What the person types at the provider, as far as the provider has told.
    fileprivate var loginName: String? { (user?["preferred_username"] ?? user?["email"])?.string }
}
