import SessionVault
import Testing

@testable import BrokerCore
@testable import OAuthSignIn

@Suite struct `Back-off after a failure` {
    private func at(_ milliseconds: Int) -> BootInstant { BootInstant(milliseconds: milliseconds) }
    private let down = BrokerError.provider(.unavailable(status: 500, retryAfter: nil))

    @Test func `PR-21: grows to five minutes and no further`() {
        for _ in 0..<20 {
            var backoff = Backoff()
            for failures in 1...20 {
                let now = failures * 3_600_001
                backoff.note(down, at: at(now))
                #expect(backoff.refusal(at: at(now)) == down)
                #expect(backoff.refusal(at: at(now + 300_000)) == nil)
                if failures > 9 { #expect(backoff.refusal(at: at(now + 149_999)) == down) }
            }
        }
    }

    @Test func `the provider's word counts down`() {
        var backoff = Backoff()
        backoff.note(.provider(.unavailable(status: 503, retryAfter: 600)), at: at(0))
        #expect(backoff.refusal(at: at(400_000)) == .provider(.unavailable(status: 503, retryAfter: 200)))
        #expect(backoff.refusalByProvider(at: at(600_000)) == nil)
        backoff.note(.provider(.rateLimited(retryAfter: Int.max)), at: at(0))
        #expect(backoff.refusalByProvider(at: at(86_400_000)) == nil)
    }

    @Test func `PR-21: a session asks at most thirty times an hour, whoever asks`() {
        for step in [1, 7_000, 100_000] {
            var backoff = Backoff()
            var now = 1_000
            var requests: [Int] = []
            while now < 4 * 3_600_000 {
                if backoff.refusal(at: at(now)) == nil {
                    requests.append(now)
                    backoff.note(down, at: at(now))
                    // The network comes and goes all the time.
                    if step > 1 { backoff.allowEarlyRetry(at: at(now)) }
                }
                now = max(now + step, step > 1 ? now : backoff.until.milliseconds)
            }
            for start in requests {
                #expect(requests.count { $0 >= start && $0 < start + 3_600_000 } <= 30)
            }
            #expect(requests.count > 40)
        }
    }

    @Test func `what fails here is tried again within half a minute`() {
        var backoff = Backoff()
        for _ in 0..<100 { backoff.note(.vaultFailed(.session(.noRoom(cause: .locked))), at: at(0)) }
        #expect(backoff.refusal(at: at(30_000)) == nil)
    }

    @Test func `relenting never goes before the provider's word`() {
        var backoff = Backoff()
        backoff.note(.provider(.rateLimited(retryAfter: 60)), at: at(0))
        backoff.allowEarlyRetry(at: at(1_000))
        #expect(backoff.refusal(at: at(59_000)) != nil)
        backoff.note(.provider(.unreachable(host: "h", reason: .provider(.noResponseInTime))), at: at(60_000))
        // Once a minute at most.
        backoff.allowEarlyRetry(at: at(60_001))
        #expect(backoff.refusal(at: at(60_001)) != nil)
        backoff.allowEarlyRetry(at: at(61_001))
        #expect(backoff.refusal(at: at(61_001)) == nil)
    }
}
