import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A refresh token that comes with a downscoped token` {
    private var downscoped: SessionQuery { SessionQuery { $0.key = TokenKey(scopes: ["email"]) } }

    private func refreshes(_ house: House) -> [String] {
        house.provider.requests.filter { $0.form["grant_type"] == "refresh_token" }
            .map { "\($0.form["refresh_token"] ?? "") \($0.form["scope"] ?? "-")" }
    }

    private func session(_ house: House) async throws -> Session { try #require(await house.vault.sessions.first) }

    @Test func `is kept beside the older one and presented for the whole scope at once`() async throws {
        let house = try await House.signedIn()
        let token = try await house.broker.session(House.name, downscoped).token
        #expect(token.scope == "email")
        #expect(refreshes(house) == ["refresh-2 email", "refresh-3 email openid"])
        #expect(
            await house.vault.stores == [
                "store refresh-2", "store refresh-2 > refresh-3", "store refresh-2 > refresh-3",
                "store refresh-2 > refresh-3 > refresh-4", "store refresh-4",
            ])
        let session = try await session(house)
        #expect(session.lostScopes.isEmpty && session.downscopedTo == nil)
        // The downscoped token is kept, and the session's own is of the whole scope.
        #expect(try await house.broker.session(House.name, downscoped).token.value == token.value)
        #expect(try await house.token() == "access-4")
        #expect(refreshes(house).count == 2)
    }

    @Test func `is presented first after a failed refresh for the whole scope, then the older one`() async throws {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        house.provider.script(.token, .setting("refresh_token", "smaller"), .status(503))
        _ = try await house.broker.session(House.name, downscoped)
        #expect(try await session(house).refreshTokens.map { $0.revealed() } == ["smaller", "refresh-2"])
        #expect(try await session(house).downscopedTo == "email")
        house.clock.advance(by: 600)
        house.provider.script(.token, .invalidGrant)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { (try? await session(house))?.refreshTokens.count == 1 })
        #expect(
            refreshes(house) == ["refresh-2 email", "smaller email openid", "smaller email openid", "refresh-2 -"])
        #expect(try await session(house).refreshToken == Secret("refresh-2"))
        #expect(try await session(house).lostScopes.isEmpty)
    }

    @Test func `is presented for the whole scope before another downscoped token is requested`() async throws {
        let house = try await House.signedIn()
        house.provider.script(.token, .setting("scope", "email"), .status(503))
        _ = try await house.broker.session(House.name, downscoped)
        house.clock.advance(by: 600)
        let other = SessionQuery { $0.key = TokenKey(scopes: ["openid"]) }
        _ = try await house.broker.session(House.name, other)
        #expect(
            refreshes(house).suffix(3) == ["refresh-3 email openid", "refresh-4 openid", "refresh-5 email openid"])
    }

    @Test func `and has shrunk the session: it is told, kept, and not done again`() async throws {
        let house = try await House()
        house.provider.behave { $0.downscopesRefreshTokens = true }
        try await house.signIn()
        _ = try await house.broker.session(House.name, downscoped)
        #expect(refreshes(house) == ["refresh-2 email", "refresh-3 email openid", "refresh-3 -"])
        let session = try await session(house)
        #expect(session.lostScopes == ["openid"])
        #expect(session.scope == "email" && session.refreshTokens.map { $0.revealed() } == ["refresh-4"])
        let view = try await house.view
        #expect(view.lostScopes == ["openid"] && view.notice == .session(.lostScopes(House.name, ["openid"])))
        #expect(view.state == .authenticated && view.error == nil)
        #expect(house.facts.names.count { $0 == "scopesLost" } == 1)
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.facts.names.count { $0 == "scopesLost" } == 1)
        let before = refreshes(house).count
        guard case .methodUnsupported = await house.failure(downscoped) else { throw Unexpected() }
        // A sign-in brings everything back, and the provider is still not asked.
        try await house.signIn()
        let healed = try await house.view
        #expect(healed.lostScopes.isEmpty && healed.notice == nil)
        guard case .methodUnsupported = await house.failure(downscoped) else { throw Unexpected() }
        #expect(refreshes(house).count == before)
    }

    @Test func `that shrank the session is not risked again by any account, nor after a restart`() async throws {
        let house = try await House()
        house.provider.behave { $0.downscopesRefreshTokens = true }
        let other = House.named("other")
        await house.broker.configure([House.account(), House.account(other)])
        try await house.signIn()
        try await house.signIn(other)
        _ = try await house.broker.session(House.name, downscoped)
        #expect(try await house.view.lostScopes == ["openid"])
        let before = refreshes(house).count
        await #expect(throws: BrokerError.methodUnsupported(.session(.losesScopes(other)))) {
            try await house.broker.session(other, downscoped)
        }
        _ = try await house.broker.signOut(House.name, endingAll: false)
        try await house.broker.lockVault()
        try await house.broker.unlockVault(passphrase: nil)
        try await house.signIn()
        #expect(await house.failure(downscoped) == .methodUnsupported(.session(.losesScopes(House.name))))
        #expect(refreshes(house).count == before)
    }

    @Test(arguments: [true, false])
    func `is not requested for an exposed socket before the provider is known to keep the scope`(rotates: Bool)
        async throws
    {
        let house = try await House()
        house.provider.behave { $0.rotates = rotates }
        try await house.signIn()
        var exposed = downscoped
        exposed.allowance = Allowance()
        #expect(
            await house.failure(exposed)
                == .methodUnsupported(.session(.mayLoseScopes(House.name, exchange: nil))))
        #expect(refreshes(house).isEmpty)
        _ = try await house.broker.session(House.name, downscoped)
        exposed.key = TokenKey(scopes: ["openid"])
        #expect(try await house.broker.session(House.name, exposed).token.scope == "openid")
        // A refresh token that stays the same has proved nothing until the session's own token was refreshed.
        let scopes = refreshes(house).map { $0.split(separator: " ", maxSplits: 1)[1] }
        #expect(scopes.prefix(3) == ["email", rotates ? "email openid" : "-", "openid"])
    }

    @Test func `that stays the same is trusted for an exposed socket once a refresh shows its scope`() async throws {
        let house = try await House()
        house.provider.behave {
            $0.rotates = false
            $0.downscopesRefreshTokens = true
        }
        try await house.signIn()
        _ = try await house.broker.session(House.name, downscoped)
        var exposed = downscoped
        exposed.key = TokenKey(scopes: ["openid"])
        exposed.allowance = Allowance()
        #expect(await house.failure(exposed) == .methodUnsupported(.session(.losesScopes(House.name))))
        #expect(refreshes(house) == ["refresh-2 email", "refresh-2 -"])
    }

    @Test func `is requested for the owner who has joined an exposed socket's refresh that is refused`() async throws {
        let house = try await House.signedIn()
        var asked = downscoped
        asked.allowance = Allowance()
        let (exposed, key) = (asked, downscoped.key)
        func waiters(_ count: Int) async -> Bool {
            await eventually {
                await house.broker.sessionManager.lanes[House.name]?.state.renewal.running[key]?.waiterCount == count
            }
        }
        await house.vault.hold()
        let refused = Task { await house.failure(exposed) }
        #expect(await waiters(1))
        let own = Task { try await house.broker.session(House.name, downscoped).token.scope }
        #expect(await waiters(2))
        // The owner's token, once it is there, would serve the exposed socket too.
        house.provider.hold(.token)
        await house.vault.release()
        #expect(await refused.value == .methodUnsupported(.session(.mayLoseScopes(House.name, exchange: nil))))
        house.provider.release(.token)
        #expect(try await own.value == "email")
    }

    @Test func `is not needed where a token for an exposed socket is exchanged`() async throws {
        let house = try await House()
        house.provider.behave {
            $0.downscopesRefreshTokens = true
            $0.metadata["grant_types_supported"] = ["urn:ietf:params:oauth:grant-type:token-exchange"]
        }
        try await house.signIn()
        var exposed = downscoped
        exposed.allowance = Allowance()
        #expect(try await house.broker.session(House.name, exposed).token.scope == "email")
        let exchange = try #require(house.provider.requests.last { $0.endpoint == .token }).form
        #expect(exchange["subject_token"] == "access-2" && exchange["scope"] == "email")
        // An expired token is refreshed before it is exchanged.
        house.clock.advance(by: 4_000)
        exposed.key = TokenKey(scopes: ["openid"])
        #expect(try await house.broker.session(House.name, exposed).token.scope == "openid")
        #expect(refreshes(house) == ["refresh-2 -"])
        // More than the session has is not to be had by an exchange.
        exposed.key = TokenKey(scopes: ["admin"])
        guard case .methodUnsupported? = await house.failure(exposed) else { throw Unexpected() }
        // A refusal of the exchange does not lead to a refresh.
        exposed.key = TokenKey(scopes: ["email"])
        house.clock.advance(by: 4_000)
        _ = try await house.token()
        house.provider.script(.token, .status(400, #"{"error":"unauthorized_client"}"#))
        #expect(
            await house.failure(exposed)
                == .methodUnsupported(.session(.mayLoseScopes(House.name, exchange: "unauthorized_client"))))
        #expect(try await house.view.error == nil)
    }

    @Test func `need not come with it for the session to shrink, which the next refresh shows`() async throws {
        let house = try await House()
        house.provider.behave {
            $0.rotates = false
            $0.downscopesRefreshTokens = true
        }
        try await house.signIn()
        _ = try await house.broker.session(House.name, downscoped)
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(refreshes(house) == ["refresh-2 email", "refresh-2 -"])
        #expect(try await house.view.lostScopes == ["openid"])
        #expect(await house.failure(downscoped) == .methodUnsupported(.session(.losesScopes(House.name))))
    }

    @Test func `is found to be smaller after a restart, too`() async throws {
        let house = try await House()
        house.provider.behave { $0.downscopesRefreshTokens = true }
        try await house.signIn()
        house.provider.script(.token, .setting("scope", "email"), .status(503))
        _ = try await house.broker.session(House.name, downscoped)
        try await house.broker.lockVault()
        try await house.broker.unlockVault(passphrase: nil)
        #expect(await eventually { (try? await house.view.state) == .authenticated })
        house.clock.advance(by: 600)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { (try? await house.view.lostScopes) == ["openid"] })
    }

    @Test func `is not doubted where the provider gave the whole scope`() async throws {
        let house = try await House.signedIn()
        house.provider.script(.token, .setting("scope", "openid email"))
        let token = try await house.broker.session(House.name, downscoped).token
        #expect(refreshes(house) == ["refresh-2 email"])
        #expect(downscoped.key.excess(of: token) == ["openid"])
        #expect(try await session(house).refreshTokens.map { $0.revealed() } == ["refresh-3"])
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A downscoped token` {
    private var downscoped: SessionQuery { SessionQuery { $0.key = TokenKey(scopes: ["mail"]) } }

    @Test func `that is refused ends no session that its provider honours`() async throws {
        let house = try await House.signedIn()
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
        let house = try await House.signedIn()
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
        let house = try await House.signedIn()
        for number in 0..<100 {
            let query = SessionQuery { $0.key = TokenKey(audience: "https://api.example/\(number)") }
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
