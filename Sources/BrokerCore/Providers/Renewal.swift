public import Secrets

/// A refresh that is ready to be sent. Its phases stay in the session manager: announce, send, keep, validate, serve.
public struct Renewal: Sendable {
    /// The refresh tokens worth presenting, newest first; empty where none is needed.
    let presents: [Secret]
    /// Sends the request with one of them. Throws only what says that there is no response to look into.
    let send: @Sendable (Secret?) async throws(BrokerError) -> RenewalResponse
    /// What an error of ``send`` or of the validation says about the session.
    let meaning: @Sendable (BrokerError) -> RenewalMeaning

    public init(
        presents: [Secret], send: @escaping @Sendable (Secret?) async throws(BrokerError) -> RenewalResponse,
        meaning: @escaping @Sendable (BrokerError) -> RenewalMeaning
    ) {
        self.presents = presents
        self.send = send
        self.meaning = meaning
    }

    /// Presents the refresh tokens, newest first; an older one only after proof that the newer one is dead.
    func present() async throws(BrokerError) -> (presented: Secret?, response: RenewalResponse) {
        for token in presents.dropLast() {
            do throws(BrokerError) {
                return (token, try await send(token))
            } catch {
                guard case .dead = meaning(error) else { throw error }
            }
        }
        return (presents.last, try await send(presents.last))
    }
}

/// The response to a refresh, after the first look: its refresh token is known, the rest is not validated yet.
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
    /// The refresh token that was presented is dead. The code is the provider's own, where it has more than one.
    case dead(code: String?)
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
