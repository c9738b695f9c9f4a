import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A flow` {
    @Test func `has a name that no command line takes for an option`() {
        let names = (0..<2_000).map { _ in Flow.newID() }
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { !$0.hasPrefix("-") && $0.utf8.count == 22 })
    }

    @Test func `a bound is kept to the millisecond, wherever in a second the flow began`() async throws {
        for start in [0, 1, 999] {
            let house = try await House()
            house.clock.advance(milliseconds: start)
            let flow = try await house.broker.signIn(House.name, SignInRequest(timeout: .seconds(2))).flow
            let end = house.clock.boot + 2_000
            #expect(await eventually { house.clock.wakes.contains(end + 1) })
            house.clock.advance(milliseconds: 2_000)
            #expect(try await house.broker.flow(flow.id).status == .pending)
            house.clock.advance(milliseconds: 1)
            guard case .expired = try await house.broker.flow(flow.id, waiting: .seconds(30)).status else {
                throw Unexpected()
            }
        }
    }
}
