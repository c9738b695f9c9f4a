internal import HTTPMessages
public import Secrets

/// A refresh that is ready to be sent. The session manager runs its phases: announce, send, keep, validate, serve.
public struct Renewal: Sendable {
    /// The refresh tokens to present, the newest first; empty if none is needed.
    let presents: [Secret]
    /// Sends the request with one of them, under the attempt. Throws if no response with tokens can be read.
    let send: @Sendable (Secret?, RefreshAttempt) async throws(BrokerError) -> RenewalResponse
    /// What an error of ``send`` or of the validation says about the session.
    let meaning: @Sendable (BrokerError) -> RenewalMeaning
    /// See ``Session/downscopedTo``; nil if the request cannot change the scope of the refresh token.
    let downscopesTo: String?

    public init(
        presents: [Secret], downscopesTo: String? = nil,
        send: @escaping @Sendable (Secret?, RefreshAttempt) async throws(BrokerError) -> RenewalResponse,
        meaning: @escaping @Sendable (BrokerError) -> RenewalMeaning
    ) {
        self.presents = presents
        self.downscopesTo = downscopesTo
        self.send = send
        self.meaning = meaning
    }
}

extension Renewal {
    /// The same, with other errors of the request.
    public func explaining(
        _ explain: @escaping @Sendable (BrokerError) async -> BrokerError
    ) -> Renewal {
        let send = send
        return Renewal(
            presents: presents, downscopesTo: downscopesTo,
            send: { token, attempt throws(BrokerError) in
                do throws(BrokerError) {
                    return try await send(token, attempt)
                } catch {
                    throw await explain(error)
                }
            }, meaning: meaning)
    }
}

/// The response to a refresh. Its refresh token has been read, the rest is not validated yet.
public struct RenewalResponse: Sendable {
    /// The new refresh token; nil if the old one stays.
    let refreshToken: Secret?
    /// The session with the response's tokens, or why none of them may be used.
    let validate: @Sendable (Session) async throws(BrokerError) -> Session

    public init(
        refreshToken: Secret?, validate: @escaping @Sendable (Session) async throws(BrokerError) -> Session
    ) {
        self.refreshToken = refreshToken
        self.validate = validate
    }
}

/// What a failed refresh says about the session.
public enum RenewalMeaning: Sendable, Equatable {
    /// The refresh token that was presented is dead. The code is the provider's own, where it has more than one; the
    /// message is its text, checked.
    case dead(code: String?, message: String? = nil)
    /// The response belongs to another session. So does the refresh token that was presented, unless it came with the
    /// last validated response.
    case otherSession
    /// The provider said that it did nothing.
    case unchanged
    /// The provider may have rotated the refresh token though its response was lost, and takes the older one only for a
    /// short while.
    case maybeRotated
    /// What failed was this request for a downscoped token; it says nothing about the session.
    case requestOnly(isUnchanged: Bool)
    /// Nothing is known. The refresh may be tried again.
    case unknown
}

extension Session {
    /// Refuses a token endpoint at another origin than the session's. The provider's own metadata may say that it has
    /// moved; the refresh token is not sent there.
    public func refuseMove(of account: Account, to endpoint: String) throws(BrokerError) {
        guard try WebURL.origin(of: endpoint) == tokenEndpointOrigin else {
            throw .conflict(.session(.endpointMoved(account.name, origin: tokenEndpointOrigin)))
        }
    }
}
