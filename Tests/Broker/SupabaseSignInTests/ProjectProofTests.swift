import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `An access token of a project` {
    private let keys = "GET /.well-known/jwks.json"
    private let user = "GET /user"

    private func isUnproved(_ error: BrokerError?) -> Bool { error == .provider(.unproved(host: "ref.supabase.co")) }

    @Test func `is verified by a published key, and the server is not asked`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.refresh() == nil)
        #expect(house.project.count(user) == 0 && house.project.count(keys) == 1)
        #expect(try await house.held?.project?.isProved == true)
    }

    @Test func `is refused with a key that is not published, after the keys were fetched once more`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let held = try await house.token()
        // The project signs with another key, and still publishes the former one alone.
        let other = try TokenMint(kid: "another")
        house.project.behave { $0.published = [$0.mint.jwk] }
        house.project.behave { $0.mint = other }
        house.clock.advance(by: 3_000)
        guard case .provider(.invalidResponse(let reason)) = await house.refresh() else { throw Unexpected() }
        #expect(reason.holds("keyNotPublished"))
        #expect(house.project.count(keys) == 2 && house.project.count(user) == 0)
        // What was rotated is kept all the same.
        #expect(try await house.refreshTokens.count == 2)
        #expect(try await house.token() == held)
        // The key is published at last.
        house.project.behave { $0.published = nil }
        house.clock.advance(by: 31)
        #expect(await house.refresh() == nil)
        #expect(try await house.token() != held)
    }

    @Test func `is verified although the project has changed its key twice within half a minute`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for kid in ["second", "third"] {
            let mint = try TokenMint(kid: kid)
            house.project.behave { $0.mint = mint }
            #expect(await house.refresh() == nil)
        }
        #expect(house.project.count(keys) == 3)
    }

    @Test func `is shown to the server once per session where no keys are published`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        try await house.signIn()
        #expect(house.project.count(user) == 1)
        #expect(await house.refresh() == nil)
        #expect(house.project.count(user) == 1)
        // A later daemon knows it still.
        let later = try await house.rebirth()
        _ = try await later.refresh(SupabaseHouse.name, isForced: true)
        #expect(house.project.count(user) == 1)
    }

    @Test func `waits while neither keys nor the server can be asked, and the answer says so`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        house.project.script(user, .fail(.unreachable(host: "ref.supabase.co", reason: "gone")))
        try await house.signIn()
        #expect(try await house.view.state == .authenticated)
        #expect(isUnproved(try await house.view.error))
        #expect(try await house.held?.tokens.isEmpty == true)
        let presented = try #require(try await house.refreshTokens.first)
        #expect(await house.vault.sessions.first?.refreshToken?.revealed() == presented)
        house.project.script(user, .fail(.unreachable(host: "ref.supabase.co", reason: "gone")))
        #expect(isUnproved(await error { try await house.token() }))
        // Rotated, and kept.
        #expect(try await house.refreshTokens.count == 2)
        house.clock.advance(by: 10)
        #expect(try await !house.token().isEmpty)
        #expect(try await house.held?.project?.isProved == true)
        #expect(try await house.view.error == nil)
    }

    @Test func `goes on without the keys where the session was proved before`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        try await house.signIn()
        house.clock.advance(by: 3_601)
        house.project.script(keys, .fail(.unreachable(host: "h", reason: "gone")))
        #expect(await house.refresh() == nil)
        #expect(house.project.count(user) == 1)
    }

    @Test func `that the server itself does not know is not served`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        house.project.script(user, .status(403, #"{"code":"bad_jwt","message":"invalid JWT"}"#))
        let failure = await error { try await house.signIn() }
        guard case .provider(.invalidResponse(let reason))? = failure else { throw Unexpected() }
        #expect(reason.holds("bad_jwt"))
        #expect(try await house.view.state == .unauthenticated)
    }
}
