import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `What is told to those who can show a person something` {
    private func wait(_ house: House, within bound: Duration) async -> BrokerError? {
        var query = SessionQuery()
        query.timeout = bound
        return await error { () throws(BrokerError) in try await house.broker.sessionAfterSignIn(House.name, query) }
    }

    private func wanted(_ house: House) -> Int { house.facts.names.count { $0 == "signInWanted" } }

    @Test func `a program waits for a sign-in that nobody was asked for`() async throws {
        let house = try await House()
        async let first = wait(house, within: .seconds(50))
        #expect(await eventually { wanted(house) == 1 })
        async let second = wait(house, within: .seconds(50))
        #expect(await eventually { wanted(house) == 2 })
        let flow = try #require(await house.broker.flows().first)
        _ = await house.broker.receive(try house.provider.consent(flow.authorizationURL))
        #expect(await [first, second] == [nil, nil])
    }

    @Test func `nothing while somebody has asked for the sign-in and shows its page`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(await wait(house, within: .milliseconds(10)) == .timedOut)
        #expect(wanted(house) == 0)
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        // Whoever cancelled it does not want to be asked.
        #expect(await wait(house, within: .milliseconds(10)) == .signInRequired(House.name))
        #expect(wanted(house) == 0)
    }

    @Test func `a session is about to end`() async throws {
        let house = try await House()
        house.provider.behave { $0.lifetime = nil }
        house.provider.script(.token, .setting("refresh_expires_in", .integer(1_800)))
        let end = house.clock.clock.now() + 1_800
        try await house.signIn()
        await house.live(1_300, step: 100_000)
        let ends = house.facts.all.compactMap { fact -> Int? in
            if case .sessionEnding(House.name, let end) = fact { end.seconds } else { nil }
        }
        #expect(ends == [end])
    }
}
