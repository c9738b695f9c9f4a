import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Flows that have ended` {
    @Test func `are remembered up to a number, the newest`() async throws {
        let house = try await House()
        var ids: [String] = []
        for _ in 0..<(FlowRegistry.maxEnded + 20) {
            let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
            ids.append(flow.id)
            #expect(try await house.broker.cancel(flow.id, isForAll: true).status == .cancelled)
        }
        let first = try #require(ids.first)
        let last = try #require(ids.last)
        _ = try await house.broker.signIn(House.name, SignInRequest())
        #expect(await error { () throws(BrokerError) in _ = try await house.broker.flow(first) } != nil)
        #expect(try await house.broker.flow(last).status == .cancelled)
        #expect(await house.broker.flowRegistry.entries.count <= FlowRegistry.maxEnded + 1)
    }
}
