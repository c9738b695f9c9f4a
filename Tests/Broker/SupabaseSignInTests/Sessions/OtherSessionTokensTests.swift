import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension `Renewing a project's session` {
    @Test func `serves no tokens of another session, and presents its own refresh token again`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let before = try await house.token()
        let own = try await house.refreshTokens
        let now = house.clock.now
        for email in [SupabaseHouse.alice, "mallory@example.org"] {
            let body = house.project.behave { server in
                let user = server.user(email: email) ?? server.addUser(email: email)
                return server.open(user.id, "password", at: now).body
            }
            house.project.script(refresh, .answer(200, body.text, []))
            guard case .provider(.otherSession) = await house.refresh() else { throw Unexpected() }
            #expect(try await house.token() == before)
            // Theirs is not kept, not in the vault either.
            #expect(try await house.refreshTokens == own)
            #expect(await house.vault.sessions.first?.refreshTokens.map { $0.revealed() } == own)
        }
        #expect(await house.refresh() == nil)
        #expect(Set(house.project.presented) == Set(own))
    }

    @Test func `treats a token as another session's only if the project signed it`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        try await house.signIn()
        let own = try await house.refreshTokens
        let now = house.clock.now
        let body = house.project.behave { server in
            server.open(server.addUser(email: "mallory@example.org").id, "password", at: now).body
        }
        let theirs = try #require(body["refresh_token"]?.string)
        house.project.script(refresh, .answer(200, body.text, []))
        house.project.script("GET /user", .fail(.unreachable(host: "h", reason: "gone")))
        guard case .provider(.unproved) = await house.refresh() else { throw Unexpected() }
        #expect(try await house.refreshTokens == [theirs] + own)
        // The project says whose it is: then its refresh token goes, and our own is presented at once.
        house.project.script(refresh, .answer(200, body.text, []))
        #expect(await house.refresh() == nil)
        #expect(house.project.presented == [own[0], theirs, own[0]])
    }

    @Test func `takes a token that is signed with a key of after the sign-in, and none that is forged`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let keys = "GET /.well-known/jwks.json"
        #expect(house.project.count(keys) == 1)
        let next = try TokenMint(kid: "k2")
        house.project.behave { server in
            server.published = [server.mint.jwk, next.jwk]
            server.mint = next
        }
        #expect(await house.refresh() == nil)
        #expect(house.project.count(keys) == 2)
        #expect(await house.refresh() == nil)
        #expect(house.project.count(keys) == 2)
        // The right name of a key, and another key.
        let before = try await house.token()
        let forger = try TokenMint(kid: "k2")
        house.project.behave { $0.mint = forger }
        guard case .provider(.invalidResponse) = await house.refresh() else { throw Unexpected() }
        #expect(try await house.token() == before)
        house.project.behave { $0.mint = next }
        #expect(await house.refresh() == nil)
    }

    @Test func `asks whose the first token is where the project signs with a secret, and then no more`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        try await house.signIn()
        #expect(await house.refresh() == nil)
        #expect(house.project.count("GET /.well-known/jwks.json") == 1)
        #expect(house.project.count("GET /user") == 1)
    }

    @Test func `does not depend on where the keys are kept`() async throws {
        let house = try await SupabaseHouse()
        house.project.script("GET /.well-known/jwks.json", .status(503), .status(503))
        try await house.signIn()
        #expect(try await house.view.state == .authenticated)
    }
}
