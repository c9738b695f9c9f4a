import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Opening and closing a session` {
    @Test func `REV-02: closing during a refresh leaves nothing and revokes the newest tokens`() async throws {
        let house = try await House.expired()
        let reading = await house.heldRefresh()
        let closing = Task { try await house.broker.signOut(House.name) }
        // Readers see it at once, long before the refresh is back.
        #expect(await eventually { (try? await house.view.state) == .unauthenticated })
        #expect(await house.failure() == .signInRequired(House.name))
        house.provider.release(.token)
        #expect(try await closing.value.account.state == .unauthenticated)
        #expect(await reading.value == .signInRequired(House.name))
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(await house.vault.sessions.isEmpty)
        #expect(
            await house.vault.log
                == [
                    "store refresh-2", "announce", "store refresh-2 > refresh-3", "store refresh-3", "retire",
                ])
        #expect(house.provider.revoked == ["refresh-3", "access-3"])
    }

    @Test func `a caller that goes away during its sign-out stops nothing`() async throws {
        let house = try await House.expired()
        let reading = await house.heldRefresh()
        let closing = Task { await error { try await house.broker.signOut(House.name) } }
        #expect(await eventually { (try? await house.view.state) == .unauthenticated })
        closing.cancel()
        #expect(await closing.value == .cancelled)
        house.provider.release(.token)
        _ = await reading.value
        #expect(await eventually { house.provider.revoked.count == 2 })
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `both refresh tokens of a doubtful rotation are revoked, even if one is refused`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .setting("access_token", nil))
        #expect(await house.failure() != nil)
        house.provider.script(.revocation, .status(503), .status(400, "?"))
        _ = try await house.broker.signOut(House.name)
        #expect(house.provider.revoked == ["refresh-3", "refresh-2", "access-2"])
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `signing out is idempotent and clears the error`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .status(500))
        #expect(await house.failure() != nil)
        for time in 0..<2 {
            let ended = try await house.broker.signOut(House.name)
            let (view, hadSession) = (ended.account, ended.hadSession)
            #expect(view.state == .unauthenticated)
            #expect(view.error == nil)
            #expect(hadSession == (time == 0))
        }
        #expect(house.provider.revoked.count == 2)
        #expect(await error { try await house.broker.signOut(House.named("nobody")) } == .accountNotFound("nobody"))
    }

    @Test func `a revocation endpoint on a host that only discovery names gets no tokens`() async throws {
        let house = try await House()
        house.provider.behave { $0.metadata["revocation_endpoint"] = "https://collector.example/revoke" }
        try await house.signIn()
        _ = try await house.broker.signOut(House.name)
        #expect(house.network.strayURLs.isEmpty)
    }

    @Test func `another spelling of the same letters is another subject`() async throws {
        let house = try await House()
        try await house.signIn(as: "re\u{301}mi")
        guard case .failed(_, .conflict) = try await house.signIn(as: "r\u{e9}mi") else { throw Unexpected() }
    }

    @Test func `with switch, another subject replaces the session`() async throws {
        let house = try await House.signedIn()
        guard case .completed = try await house.signIn(as: "bob", switching: true) else { throw Unexpected() }
        #expect(try await house.view.subject == "bob")
        #expect(await house.vault.sessions.map(\.subject) == ["bob"])
    }

    @Test func `signing in again replaces the session of the same person, and only after success`() async throws {
        let house = try await House.signedIn()
        let token = try await house.token()
        // The code is sent once more after a failure that may pass.
        house.provider.script(.token, .status(500), .status(500))
        guard case .failed(_, .provider(.unavailable)) = try await house.signIn() else { throw Unexpected() }
        #expect(try await house.token() == token)
        guard case .completed = try await house.signIn() else { throw Unexpected() }
        #expect(try await house.token() != token)
        #expect(try await house.view.error == nil)
    }

    @Test func `a sign-in that is done during a refresh has the last word`() async throws {
        let house = try await House.expired()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        house.provider.hold(.userinfo)
        let signingIn = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.userinfo, 2))
        house.provider.hold(.token)
        let reading = Task { try await house.token() }
        #expect(await house.provider.arrived(.token, 3))
        house.provider.release(.userinfo)
        house.provider.release(.token)
        // The reader looks again when its refresh is done: it may find either.
        #expect(try await ["access-4", "access-5"].contains(reading.value))
        guard case .completed = await signingIn.value else { throw Unexpected() }
        #expect(try await house.token() == "access-4")
        #expect(await house.vault.sessions.first?.refreshToken == Secret("refresh-4"))
    }
}
