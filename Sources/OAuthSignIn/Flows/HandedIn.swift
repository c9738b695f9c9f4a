public import BrokerCore
internal import HTTPMessages
internal import OAuth
public import Secrets

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
    /// the refresh token. A session that is held is not replaced: whose the other one is can only be told afterwards.
    func takeOver(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning {
        guard let token = (request.details as? HandedInSession)?.refreshToken else {
            throw .invalid(field: "refresh_token", reason: .oauth(.noTokenHandedIn))
        }
        let name = provider.account.name
        guard await context.sessions.held(name) == nil || request.switchesSubject else {
            throw .conflict(.oauth(.signedInAlready(name)))
        }
        let metadata = try await provider.metadata()
        try provider.check(metadata, for: provider.account.scopes, by: .session)
        let provider = provider
        try await context.open(of: provider.account, isEphemeral: false, subject: nil) { () throws(BrokerError) in
            let session = try await provider.session(handedIn: token, metadata)
            return (session, SessionOpening(switchesSubject: request.switchesSubject))
        }
        return .done
    }
}

extension Provider {
    /// The session that a refresh token stands for (RFC 6749 section 6).
    fileprivate func session(
        handedIn token: Secret, _ metadata: ProviderMetadata
    ) async throws(BrokerError) -> Session {
        let response: TokenResponse
        do throws(BrokerError) {
            response = try await refresh(
                token, key: .own, metadata: metadata, registration: try await registration(metadata),
                because: .requested)
        } catch {
            guard error.provesDeadGrant else { throw error }
            throw .invalid(field: "refresh_token", reason: .oauth(.handedInTokenRefused))
        }
        let tokens: TokenSet
        do throws(OAuthError) {
            tokens = try response.tokenSet()
        } catch {
            throw BrokerError(error, host: HTTPRequest(url: metadata.tokenEndpoint).host)
        }
        var session = try await session(of: tokens, at: metadata, askedFor: account.scopes, evidence: SignInEvidence())
        // Without a new one the former one stays valid.
        if session.refreshToken == nil { session.refreshToken = token }
        return session
    }
}
