import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `What a provider gave to a sign-in that comes to nothing` {
    @Test func `is revoked if another user is signed in`() async throws {
        let house = try await House()
        try await house.signIn()
        let held = try await house.token()
        guard case .failed(_, .conflict) = try await house.signIn(as: "bob") else { throw Unexpected() }
        #expect(await eventually { house.provider.revoked.count == 2 })
        #expect(try await house.view.subject == "alice")
        #expect(try await house.token() == held)
        #expect(!house.provider.revoked.contains(held))
    }

    /// Begins a sign-in and cancels it while its code is redeemed.
    private func cancel(_ house: House, as subject: String) async throws {
        let flow = try await house.broker.signIn(House.name, SignInRequest(switchesSubject: true)).flow
        let callback = try house.provider.consent(flow.authorizationURL, as: subject)
        let count = house.provider.count(.token)
        house.provider.hold(.token)
        let receiving = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.token, count + 1))
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        house.provider.release(.token)
        guard case .failed(flow.id, .flowCancelled) = await receiving.value else { throw Unexpected() }
    }

    @Test func `is revoked if the sign-in was cancelled while its code was redeemed`() async throws {
        let house = try await House()
        try await cancel(house, as: "alice")
        #expect(await eventually { house.provider.count(.revocation) == 2 })
        #expect(try await house.view.state == .unauthenticated)
    }

    /// Some providers have one grant for all sessions of a user, and would end the one that is held.
    @Test func `is not revoked while the same user is signed in`() async throws {
        let house = try await House()
        try await house.signIn()
        try await cancel(house, as: "alice")
        #expect(await eventually { house.work.count == 0 })
        #expect(house.provider.revoked.isEmpty)
        #expect(try await house.view.subject == "alice")
    }
}
