public import RingbackBase

/// A refresh that is ready to be sent. The session manager runs its phases: announce, send, keep, validate, serve.
public struct Renewal: Sendable {
    /// The refresh tokens to present, the newest first; empty if none is needed.
    let presents: [Secret]
    /// Sends the request with one of them, under the attempt. Throws if no response with tokens can be read.
    let send: @Sendable (Secret?, RefreshAttempt) async throws(BrokerError) -> RenewalResponse
    /// The meaning of an error of ``send`` or of the validation for the session.
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

    public func explaining(_ explain: @escaping @Sendable (BrokerError) async -> BrokerError) -> Renewal {
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

public enum RenewalMeaning: Sendable, Equatable {
    /// The refresh token that was presented is dead. The code is the provider's own, where it has more than one; the
    /// message is its text, checked.
    case dead(code: String?, message: String? = nil)
    /// The response is another session's. So is the presented token, unless the last validated response brought it.
    case otherSession
    /// The provider said that it did nothing.
    case unchanged
    /// The provider may have rotated the refresh token, and takes the older one only for a short while.
    case maybeRotated
    /// What failed was this request for a downscoped token; it says nothing about the session.
    case requestOnly(isUnchanged: Bool)
    /// Nothing is known. The refresh may be tried again.
    case unknown
}

extension Session {
    /// Refuses a token endpoint at another origin than the session's, which the provider's metadata may name.
    public func refuseMove(of account: Account, to endpoint: String) throws(BrokerError) {
        guard try WebURL.origin(of: endpoint) == tokenEndpointOrigin else {
            throw .conflict(
                .stated(
                    "The token endpoint of \(account.name) is no longer at \(tokenEndpointOrigin). Its session was not "
                        + "sent to the new one. Sign in again."))
        }
    }
}

/// Redeems the code of a callback with at most two requests (RFC 6749 section 4.1.3).
///
/// If the provider cannot be reached, fails (5xx) or cuts off its response, the same request is sent once more. A
/// provider may revoke tokens when a code is used twice (RFC 6749 section 4.1.2), but no tokens have arrived yet.
public enum CodeExchange {
    public struct Failure: Error {
        let error: BrokerError
        /// Seconds until the same request may be sent again; nil if it must not be sent again.
        let pause: Int?

        /// The request could not be sent, or there is no whole response.
        public init(sending error: BrokerError, to host: String) {
            self.error = error
            let cut = BrokerError(HTTPClientError.malformed(host: host))
            let isPassing = if case .provider(.unreachable) = error { true } else { error == cut }
            pause = isPassing ? usualPause : nil
        }

        public init(response error: BrokerError) {
            self.error = error
            switch error {
            case .provider(.unavailable(500..., _)), .provider(.failing): break
            default:
                pause = nil
                return
            }
            let seconds = max(error.retryAfter ?? usualPause, usualPause)
            pause = seconds <= longestPause ? seconds : nil
        }
    }

    /// A code is usually valid for a minute: after this time a second request of up to 20 s would be too late.
    private static let firstTry: Duration = .seconds(15)
    /// Seconds until the second request if the provider sends no Retry-After: about the time of a restart.
    private static let usualPause = 1
    /// The longest that a provider may ask to wait (seconds).
    private static let longestPause = 15

    /// - Parameters:
    ///   - isSpent: true for the error of a code that was used. If the second request fails with it, the first one may
    ///     have used the code, and the first error is thrown.
    ///   - doubt: called with the error of the first request.
    public static func run<Value>(
        isSpent: (BrokerError) -> Bool, doubt: (BrokerError) async -> Void = { _ in },
        _ send: () async throws(Failure) -> Value
    ) async throws(BrokerError) -> Value {
        let end = ContinuousClock.now + firstTry
        let first: BrokerError
        do throws(Failure) {
            return try await send()
        } catch {
            await doubt(error.error)
            guard let pause = error.pause, ContinuousClock.now < end else { throw error.error }
            guard (try? await Task.sleep(for: .seconds(pause))) != nil else { throw .cancelled }
            first = error.error
        }
        do throws(Failure) {
            return try await send()
        } catch {
            throw isSpent(error.error) ? first : error.error
        }
    }
}
