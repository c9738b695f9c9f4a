public import BrokerCore
internal import OAuth
public import RingbackBase

/// The refresh token of a session that another program made with the account's own client.
public struct HandedInSession: SignInDetails, Equatable {
    var refreshToken: Secret?

    public init(refreshToken: Secret) { self.refreshToken = refreshToken }

    public var withoutSecrets: any SignInDetails {
        var details = self
        details.refreshToken = nil
        return details
    }
}

extension OAuthProvider {
    /// Takes over a session that another program made. It is refreshed at once, and stored only if the provider accepts
    /// the refresh token. A session that the account has is replaced only if the caller asks to switch: the user of the
    /// other session is known only afterwards.
    func takeOver(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning {
        guard let token = (request.details as? HandedInSession)?.refreshToken else {
            throw .invalid(
                field: "refresh_token", reason: .stated("missing: a session that is passed to Ringback consists of it"))
        }
        let name = provider.account.name
        let taken = Reason.stated("\(name) is signed in already. Sign out first, or switch the user.")
        guard await context.sessions.held(name) == nil || request.switchesSubject else { throw .conflict(taken) }
        let metadata = try await provider.metadata()
        try provider.check(metadata, for: provider.account.scopes, by: .session)
        let provider = provider
        try await context.open(of: provider.account, isEphemeral: false, subject: nil) { attempt throws(BrokerError) in
            // A sign-in may have ended meanwhile.
            guard await context.sessions.held(name) == nil || request.switchesSubject else { throw .conflict(taken) }
            let handed = try await provider.session(handedIn: token, under: attempt, metadata) { session in
                context.endUnheld(session, of: provider.account)
            }
            let opening = SessionOpening(switchesSubject: request.switchesSubject, notice: handed.problem)
            return (handed.session, opening)
        }
        return .done
    }
}

private struct TakenSession {
    let session: Session
    /// Why nothing could be validated yet: without an access token, a later refresh validates it.
    var problem: BrokerError?
}

extension Provider {
    /// Refreshes with the given token (RFC 6749 section 6). It may be spent then, so a new one is never dropped: it is
    /// part of the session, or ended at the provider.
    fileprivate func session(
        handedIn token: Secret, under attempt: RefreshAttempt, _ metadata: ProviderMetadata,
        ending end: (Session) -> Void
    ) async throws(BrokerError) -> TakenSession {
        let response: TokenResponse
        do throws(BrokerError) {
            response = try await refresh(
                token, provenBy: nil, under: attempt, key: .own, metadata: metadata,
                registration: try await registration(metadata), because: .requested)
        } catch {
            guard error.provesDeadGrant else { throw error }
            let text = "the provider does not accept it for this client; nothing was stored"
            throw .invalid(field: "refresh_token", reason: .stated(text))
        }
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try response.tokenSet()
        } catch {
            let problem = BrokerError(error, host: HTTPRequest(url: metadata.tokenEndpoint).host)
            guard response.refreshToken != nil else { throw problem }
            return TakenSession(session: try unvalidated(response, token, metadata), problem: problem)
        }
        if let idToken = tokens.idToken, account.scopes.contains("openid") {
            do throws(BrokerError) {
                _ = try await keysForIDToken(idToken, metadata)
            } catch {
                guard error.isTransient else { throw error }
                return TakenSession(session: try unvalidated(response, token, metadata), problem: error)
            }
        }
        do throws(BrokerError) {
            var session = try await session(
                of: tokens, at: metadata, askedFor: account.scopes, evidence: SignInEvidence())
            // Without a new refresh token the former one stays valid.
            if session.refreshToken == nil { session.refreshToken = token }
            return TakenSession(session: session)
        } catch {
            // If the refresh token was not rotated, it stays valid, and the other program goes on using it.
            guard let rotated = response.refreshToken, rotated != token else { throw error }
            end(try session(of: tokens, at: metadata, askedFor: account.scopes))
            guard case .provider(.invalidResponse(let reason)) = error else { throw error }
            let isRevoked = metadata.revocationEndpoint != nil
            throw .provider(.invalidResponse(.both(reason, .oauth(.handedInSessionNotKept(isRevoked: isRevoked)))))
        }
    }

    /// The session of a response in which nothing was validated. It has no access token.
    private func unvalidated(
        _ response: TokenResponse, _ presented: Secret, _ metadata: ProviderMetadata
    ) throws(BrokerError) -> Session {
        var session = try session(of: nil, at: metadata, askedFor: account.scopes)
        session.refreshToken = presented
        if let token = response.refreshToken, token != presented {
            session.unvalidated = Session.Unvalidated(token)
            session.rotation = .rotates
        }
        return session
    }
}
