import OAuth
import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `The session sessionManager` {
    static let other = "https://other.example"

    private func house() async throws -> House {
        try await House(also: { [try FakeProvider(`The session sessionManager`.other, clock: $0)] })
    }

    @Test(arguments: [
        [House.account(issuer: other)], [House.account(clientID: "another-client")], [],
    ])
    func `a changed binding or a removed account sets the session aside and brings it back`(
        accounts: [Account]
    ) async throws {
        let house = try await house()
        try await house.signIn()
        let token = try await house.token()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        await house.broker.configure(accounts)
        #expect(house.broker.snapshot.current("work") == nil)
        let expected: BrokerError =
            accounts.isEmpty ? .accountNotFound("work") : .signInRequired(House.name)
        #expect(await house.failure() == expected)
        #expect(try await house.broker.flow(flow.id).status == .cancelled)
        #expect(house.doors.closed.count == house.doors.opened)
        #expect(await house.vault.sessions.count == 1)
        // Its callback comes too late, and reload never revokes.
        #expect(await house.broker.receive(try house.provider.consent(flow.authorizationURL)) == .ended)
        #expect(house.provider.revoked.isEmpty)

        await house.broker.configure([House.account()])
        #expect(try await house.token() == token)
        #expect(house.provider.presented.isEmpty)
        #expect(house.network.strayURLs.isEmpty)
    }

    @Test func `a refresh in flight when the binding changes is kept for its return, unseen`() async throws {
        let house = try await house()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        let reading = await house.heldRefresh()
        await house.broker.configure([House.account(issuer: `The session sessionManager`.other)])
        let fresh = Task { await house.failure() }
        house.provider.release(.token)
        #expect(await reading.value == .signInRequired(House.name))
        #expect(await fresh.value == .signInRequired(House.name))
        #expect(await house.vault.stores == ["store refresh-2", "store refresh-2 > refresh-3", "store refresh-3"])
        #expect(try await house.view.state == .unauthenticated)

        await house.broker.configure([House.account()])
        #expect(try await house.token() == "access-3")
        #expect(house.provider.presented == ["refresh-2"])
    }

    @Test func `a refreshed session that cannot be stored is kept for an account that left meanwhile`() async throws {
        let house = try await house()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        let reading = await house.heldRefresh()
        await house.broker.configure([])
        await house.broker.configure([House.account()])
        await house.vault.failStoring(with: .unwritable(.diskFull))
        house.provider.release(.token)
        _ = await reading.value
        #expect(try await house.token() == "access-3")
        await house.vault.failStoring(with: nil)
        house.clock.advance(by: 3_600)
        #expect(try await house.token() == "access-4")
        #expect(house.provider.presented == ["refresh-2", "refresh-3"])
    }

    @Test func `a dead grant of a binding that is gone does not touch the new one`() async throws {
        let house = try await house()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.hold(.token)
        house.provider.script(.token, .invalidGrant)
        let reading = Task { await house.failure() }
        #expect(await house.provider.arrived(.token, 2))
        await house.broker.configure([House.account(issuer: `The session sessionManager`.other)])
        house.provider.release(.token)
        #expect(await reading.value == .signInRequired(House.name))
        #expect(try await house.view.error == nil)
    }

    @Test func `a session that is saved while the binding changes is not the new provider's`() async throws {
        let house = try await house()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        await house.vault.hold()
        let signingIn = Task { await house.broker.receive(callback) }
        #expect(await eventually { await house.vault.log.count == 1 })
        await house.broker.configure([House.account(issuer: `The session sessionManager`.other)])
        await house.vault.release()
        guard case .failed(_, .flowCancelled) = await signingIn.value else { throw Unexpected() }
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(try await house.view.subject == nil)
    }

    @Test func `what does not bind may change under a session`() async throws {
        let house = try await house()
        try await house.signIn()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        await house.broker.configure([House.account(scopes: ["openid"])])
        #expect(await house.failure() == nil)
        #expect(try await house.broker.flow(flow.id).status == .pending)
    }

    @Test func `a vault that hangs is not waited for longer than the caller's bound`() async throws {
        let house = try await House.expired()
        let again = house.rebirth()
        await house.vault.hold()
        await again.configure([House.account()])
        let query = SessionQuery { $0.timeout = .milliseconds(20) }
        #expect(await error { try await again.session(House.name, query) } == .timedOut)
        await house.vault.release()
    }

    @Test func `accounts are found by name and by issuer`() async throws {
        let house = try await house()
        let second = House.named("second")
        await house.broker.configure([
            House.account(), House.account(second, issuer: `The session sessionManager`.other),
        ])
        #expect(await house.broker.accounts().map(\.name.rawValue) == ["second", "work"])
        #expect(try await house.broker.account(issuer: `The session sessionManager`.other) == second)
        #expect(
            await error { try await house.broker.account(issuer: "https://none.example") }
                == .accountNotFound("https://none.example"))
        await house.broker.configure([House.account(), House.account(second)])
        #expect(await error { try await house.broker.account(issuer: "https://id.example") }?.kind == "conflict")
    }
}

@Suite struct `An account` {
    @Test func `has a name of 1 to 64 lower-case letters, digits, dots, underscores and hyphens`() {
        for name in ["a", "0", "org.swisscoin.app", "a-b_c.d", String(repeating: "a", count: 64)] {
            #expect(AccountName(name)?.rawValue == name)
        }
        for name in ["", "A", ".a", "-a", "_a", "a/b", "a b", "é", "a\n", String(repeating: "a", count: 65)] {
            #expect(AccountName(name) == nil)
        }
    }

    @Test func `binds its session to issuer, token endpoint and client`() throws {
        func binding(_ issuer: String?, _ token: String, _ client: String = "c") throws -> SessionBinding {
            let metadata = try ProviderMetadata(
                issuer: issuer, authorizationEndpoint: "https://a.example/authorize", tokenEndpoint: token)
            return Account(
                name: House.name, provider: "oauth2", source: "test", kind: OAuthAccount(endpoints: .fixed(metadata)),
                clientID: client
            ).binding
        }
        let one = try binding("https://a.example", "https://a.example/token")
        #expect(try one == binding("https://a.example", "https://a.example/token/v2"))
        #expect(try one != binding("https://a.example", "https://b.example/token"))
        #expect(try one != binding("https://b.example", "https://a.example/token"))
        #expect(try one != binding("https://a.example", "https://a.example/token", "d"))
        #expect(try binding(nil, "https://a.example/token") != binding(nil, "https://b.example/token"))
        #expect(
            SessionBinding(provider: "a", clientID: "bc").text != SessionBinding(provider: "ab", clientID: "c").text)
    }
}
