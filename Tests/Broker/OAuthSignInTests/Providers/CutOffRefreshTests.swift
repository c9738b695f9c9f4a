import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A refresh whose answer is cut off` {
    @Test(arguments: [#""refresh-3""#, #""refresh-3","#, #""id_token":"ey"#])
    func `keeps the new refresh token that is whole, and uses nothing else of it`(end: String) async throws {
        let house = try await House.expired()
        house.provider.script(.token, .cut(after: end))
        #expect(await house.failure()?.kind == "provider.invalidResponse")
        #expect(await house.vault.log == ["store refresh-2", "announce", "store refresh-2 > refresh-3"])
        let view = try await house.view
        #expect(view.state == .authenticated && view.isStale && view.error != nil)
        house.clock.advance(by: 600)
        _ = try await house.token()
        #expect(house.provider.presented == ["refresh-2", "refresh-3"])
        #expect(try await house.view.error == nil)
    }

    @Test func `believes nothing of it, however whole it looks`() async throws {
        let house = try await House.expired()
        let before = try #require(await house.vault.sessions.first)
        house.provider.script(.token, .cut(after: "}", .tooLarge(host: "id.example")))
        #expect(await house.failure()?.kind == "provider.invalidResponse")
        let after = try #require(await house.vault.sessions.first)
        #expect(after.tokens == before.tokens && after.identity == before.identity)
        #expect(after.refreshTokens.map { $0.revealed() } == ["refresh-3", "refresh-2"])
    }

    @Test(arguments: [#""refresh_token":"refresh-"#, #""access_token""#])
    func `uses no part of a token, and says why it was cut off`(end: String) async throws {
        let house = try await House.expired()
        let held = await house.vault.sessions
        house.provider.script(.token, .cut(after: end, .timedOut(host: "id.example")), .status(503))
        guard case .provider(.unreachable("id.example", _, _)) = await house.failure() else { throw Unexpected() }
        #expect(await house.vault.sessions == held)
        house.clock.advance(by: 600)
        #expect(await house.failure() != nil)
        #expect(house.provider.presented == ["refresh-2", "refresh-2"])
    }

    @Test(arguments: [429, 503, 400])
    func `an error status with a token set keeps the new refresh token beside the older one`(status: Int) async throws {
        let house = try await House.expired()
        let body = #"{"access_token":"access-3","token_type":"Bearer","refresh_token":"refresh-3"}"#
        house.provider.script(.token, .status(status, body))
        #expect(await house.failure() != nil)
        let session = try #require(await house.vault.sessions.first)
        #expect(session.refreshTokens.map { $0.revealed() } == ["refresh-3", "refresh-2"])
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `is not asked for where a code is redeemed`() async throws {
        let house = try await House()
        house.provider.script(.token, .cut(after: #""refresh-2""#))
        guard case .failed(_, .provider(.invalidResponse)) = try await house.signIn() else { throw Unexpected() }
        #expect(await house.vault.log.isEmpty)
    }
}
