import Cryptography
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

extension `Reading a session` {
    // MARK: Refreshing on demand

    @Test func `an explicit refresh takes the result of one that ended less than five seconds ago, unless forced`()
        async throws
    {
        let house = try await House()
        try await house.signIn()
        _ = try await house.broker.refresh(House.name)
        house.clock.advance(by: 4)
        _ = try await house.broker.refresh(House.name)
        #expect(house.provider.count(.token) == 2)
        _ = try await house.broker.refresh(House.name, isForced: true)
        #expect(house.provider.count(.token) == 3)
        house.clock.advance(by: 5)
        _ = try await house.broker.refresh(House.name)
        #expect(house.provider.count(.token) == 4)
    }

    @Test func `an explicit refresh joins the one in flight, forced or not`() async throws {
        let house = try await House.expired()
        house.provider.hold(.token)
        let reading = Task { try await house.token() }
        #expect(await house.provider.arrived(.token, 2))
        let refreshes = [false, true].map { isForced in
            Task { await house.refreshFailure(isForced: isForced) }
        }
        house.provider.release(.token)
        for refresh in refreshes { #expect(await refresh.value == nil) }
        _ = try await reading.value
        // The forced one may have come after the end of the one in flight.
        #expect(house.provider.count(.token) <= 3)
    }

    @Test func `an explicit refresh tries at once despite back-off, but not before the provider's Retry-After`()
        async throws
    {
        let house = try await House.expired()
        house.provider.script(.token, .status(500), .status(429, "", retryAfter: 30))
        _ = await house.failure()
        house.clock.advance(by: 0)
        let limited = await house.refreshFailure(isForced: true)
        #expect(limited == .provider(.rateLimited(retryAfter: 30)))
        house.clock.advance(by: 10)
        let early = await house.refreshFailure(isForced: true)
        #expect(early == .provider(.rateLimited(retryAfter: 20)))
        #expect(await house.failure() == .provider(.rateLimited(retryAfter: 20)))
        #expect(house.provider.count(.token) == 3)
        house.clock.advance(by: 20)
        _ = try await house.broker.refresh(House.name)
        #expect(house.provider.count(.token) == 4)
    }

    @Test func `a rejected token that is no longer held costs no request`() async throws {
        let house = try await House()
        try await house.signIn()
        let held = try await house.token()
        _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array("access-of-old".utf8)))
        #expect(house.provider.count(.token) == 1)
        _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(held.utf8)))
        #expect(house.provider.count(.token) == 2)
        #expect(try await house.token() != held)
    }

    @Test func `a token rejected right after its refresh is refreshed once more, not in a circle`() async throws {
        let house = try await House()
        try await house.signIn()
        _ = try await house.broker.refresh(House.name, isForced: true)
        #expect(house.provider.count(.token) == 2)
        for count in [3, 3, 3] {
            let held = try await house.token()
            _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(held.utf8)))
            #expect(house.provider.count(.token) == count)
        }
        house.clock.advance(by: 10)
        let held = try await house.token()
        _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(held.utf8)))
        #expect(house.provider.count(.token) == 4)
    }

    @Test func `FAPI-32: each token that a server rejects is replaced, by the newest refresh token`() async throws {
        let house = try await House()
        try await house.signIn()
        for count in 1...2 {
            house.clock.advance(by: 60)
            let rejected = try await house.token()
            _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(rejected.utf8)))
            #expect(try await house.token() != rejected)
            #expect(house.provider.presented == Array(["refresh-2", "refresh-3"].prefix(count)))
        }
    }
}
