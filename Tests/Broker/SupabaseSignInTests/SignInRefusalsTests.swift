import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A sign-in that is refused before it is a flow` {
    @Test func `is told and shown before its caller is answered`() async throws {
        let house = try await SupabaseHouse()
        let events = try await house.events {
            #expect(
                await house.failure("password") { fields in
                    fields.email = SupabaseHouse.alice
                    fields.password = Secret("wrong")
                } != nil)
            let shown = try await house.view.error
            #expect(shown?.word == "invalid_credentials")
        }
        #expect(events == [.signInFailed])
        try await house.signIn()
        #expect(try await house.view.error == nil)
    }

    @Test func `by the network, or for another person, is told too`() async throws {
        let house = try await SupabaseHouse()
        house.project.script("POST /otp", .status(503))
        let events = try await house.events {
            #expect(await house.failure("otp") { $0.email = SupabaseHouse.alice } != nil)
        }
        #expect(events == [.signInFailed])
        house.project.behave { _ = $0.addUser(email: "bob@example.org", password: SupabaseHouse.secret.revealed()) }
        try await house.signIn()
        _ = await error { try await house.signIn(email: "bob@example.org") }
        guard case .conflict = try await house.view.error else { throw Unexpected() }
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `for a mistake in the request sends no event`() async throws {
        let house = try await SupabaseHouse()
        for fill in [
            { $0.email = "nobody" }, { $0.email = SupabaseHouse.alice },
            {
                $0.phone = "+4915112"; $0.email = SupabaseHouse.alice
            },
        ] as [@Sendable (inout SupabaseSignInFields) -> Void] {
            #expect(await house.failure("password", fill) != nil)
            #expect(try await house.view.error == nil)
        }
        // One that is too short is as weak as one that the project calls so.
        let weak = await house.problem("sign_up") { fields in
            fields.email = "eve@example.org"
            fields.password = Secret("short")
        }
        #expect(weak?.code == "weak_password")
        #expect(try await house.view.error != nil)
    }

    @Test func `is nothing of the kind where the person stays signed in`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.script("GET /user/identities/authorize", .status(503))
        #expect(await house.failure("link") { $0.oauthProvider = "github" } != nil)
        #expect(try await house.view.error == nil)
    }
}
