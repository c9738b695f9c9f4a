import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A downscoped token` {
    private var downscoped: SessionQuery {
        var query = SessionQuery()
        query.key = TokenKey(scopes: ["mail"])
        return query
    }

    @Test func `that is refused ends no session that its provider honours`() async throws {
        let house = try await House()
        try await house.signIn()
        house.provider.script(.token, .invalidGrant)
        guard case .provider(.refused("invalid_grant", _)) = await house.failure(downscoped) else { throw Unexpected() }
        #expect(try await house.view.state == .authenticated)
        #expect(try await house.token() == "access-2")
        // The session's own refresh, at once, says what holds.
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { house.provider.presented.count == 2 })
        #expect(await eventually { (try? await house.view.state) == .authenticated })
        #expect(await house.failure() == nil)
    }

    @Test func `that is refused ends a session that its provider has ended`() async throws {
        let house = try await House()
        try await house.signIn()
        house.provider.script(.token, .invalidGrant)
        _ = await house.failure(downscoped)
        house.provider.script(.token, .invalidGrant)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { await house.failure() == .sessionExpired(House.name) })
    }

    @Test func `causes one request, and no more, where it brings no refresh token`() async throws {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        _ = try await house.broker.session(House.name, downscoped)
        for _ in 0..<5 { _ = await house.broker.sessionManager.runDueTasks() }
        #expect(await eventually { house.broker.work.count == 0 })
        #expect(house.provider.presented.count == 1)
    }

    @Test func `crowds out no bindingID, however many there are`() async throws {
        let house = try await House()
        try await house.signIn()
        for number in 0..<100 {
            var query = SessionQuery()
            query.key = TokenKey(audience: "https://api.example/\(number)")
            _ = try await house.broker.session(House.name, query)
        }
        #expect(try #require(await house.vault.sessions.first).tokens.count <= 34)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A session with an end of its own` {
    @Test func `is refreshed before it, however long its token lives`() async throws {
        let house = try await House()
        house.provider.script(.token, .setting("refresh_expires_in", 100))
        try await house.signIn()
        house.clock.advance(by: 70)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(house.provider.presented.isEmpty)
        house.provider.script(.token, .setting("refresh_expires_in", 100))
        house.clock.advance(by: 12)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { house.provider.presented.count == 1 })
    }
}
