import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `The session snapshot` {
    @Test func `shows what may be handed out at this instant, and nothing else`() async throws {
        let house = try await House()
        let snapshot = house.broker.snapshot
        #expect(snapshot.current("work") == nil)
        try await house.signIn()
        let first = try #require(snapshot.current("work"))
        #expect(first.entry.issuedToken.token.value == Secret("access-2"))
        #expect(first.remaining == 3_600)
        #expect(first.expiresAt == house.clock.now + 3_600)
        #expect(snapshot.current("other") == nil)
        // Where a minute is not left, a refresh is due.
        house.clock.advance(by: 3_541)
        #expect(snapshot.current("work") == nil)
        _ = try await house.token()
        let second = try #require(snapshot.current("work"))
        #expect(second.entry.encoding !== first.entry.encoding)
        _ = try await house.broker.signOut(House.name)
        #expect(snapshot.current("work") == nil)
    }

    @Test func `shows nothing from the first instant of a sign-out`() async throws {
        let house = try await House()
        try await house.signIn()
        await house.vault.hold()
        let closing = Task { _ = try await house.broker.signOut(House.name) }
        #expect(await eventually { await house.vault.log.contains("retire") })
        #expect(house.broker.snapshot.current("work") == nil)
        await house.vault.release()
        try await closing.value
    }
}

@Suite struct `The policy` {
    @Test func `lets the owner and root in, until it is asked anew`() {
        let policy = Policy(owner: 1_000)
        for (uid, isAllowed) in [(1_000, true), (0, true), (1_001, false), (65_534, false)] as [(UInt32, Bool)] {
            let decision = policy.decide(PolicyPeer(uid: uid, pid: 1), account: "work", operation: .token)
            #expect(decision.isAllowed == isAllowed)
            #expect(decision.generation == policy.generation)
        }
        let before = policy.generation
        policy.invalidate()
        #expect(policy.generation > before)
    }
}
