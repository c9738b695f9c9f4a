internal import HTTPMessages

/// Redeems the code of a callback with at most two requests (RFC 6749 section 4.1.3).
///
/// If the provider cannot be reached, fails (5xx) or cuts off its response, the same request is sent once more. A
/// provider may revoke tokens when a code is used twice (RFC 6749 section 4.1.2), but no tokens have arrived yet.
public enum CodeExchange {
    /// Why a request did not redeem the code.
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

        /// The response is an error, or cannot be used.
        public init(response error: BrokerError) {
            self.error = error
            switch error {
            case .provider(.unavailable(let status, _)) where status >= 500: break
            case .provider(.failing): break
            default:
                pause = nil
                return
            }
            let seconds = max(error.retryAfter ?? usualPause, usualPause)
            pause = seconds <= longestPause ? seconds : nil
        }
    }

    /// A code is usually valid for one minute. If the first request failed within this time, a second one, which may
    /// take 20 s, is still in time.
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
