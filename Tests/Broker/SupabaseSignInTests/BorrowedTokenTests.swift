import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A request that changes nothing of a session` {
    private let name = SupabaseHouse.name
    private let touch = "POST /rest/v1/rpc/touch"

    private func call(_ house: SupabaseHouse) async throws(BrokerError) -> JSON {
        try await house.broker.supabase.call(name, function: "touch", arguments: JSONObject())
    }

    @Test func `a function's call without a response delays neither a refresh nor a sign-out`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.hold(touch)
        let calling = Task { try await call(house) }
        #expect(await house.project.arrived(touch))
        #expect(await house.refresh() == nil)
        _ = try await house.broker.signOut(name)
        #expect(try await house.view.state == .unauthenticated)
        house.project.release(touch)
        _ = await calling.result
    }

    @Test
    func `a function's call that the server calls sessionless ends the session, unless it has another token by then`()
        async throws
    {
        for hasAnother in [false, true] {
            let house = try await SupabaseHouse.signedIn()
            house.project.script(touch, .status(401, #"{"code":"session_not_found","message":"x"}"#))
            house.project.hold(touch)
            let calling = Task { await error { try await call(house) } }
            #expect(await house.project.arrived(touch))
            if hasAnother { #expect(await house.refresh() == nil) }
            house.project.release(touch)
            let failure = await calling.value
            #expect(failure != nil)
            let state = try await house.view.state
            #expect(
                (state == .authenticated) == (hasAnother || failure != .sessionExpired(name, word: "session_not_found"))
            )
        }
    }

    @Test func `what a caller gets names no refresh token`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let issued = try await house.broker.session(name, SessionQuery())
        let held = try #require(try await house.held)
        #expect(issued.token.value == held.tokens[.own]?.value && issued.user == held.user)
        func secrets(_ value: Any) -> [Secret] {
            if let secret = value as? Secret { return [secret] }
            return Mirror(reflecting: value).children.flatMap { secrets($0.value) }
        }
        let refreshTokens = held.refreshTokens
        #expect(!secrets(held).isEmpty && secrets(held).contains { refreshTokens.contains($0) })
        #expect(!secrets(issued).contains { refreshTokens.contains($0) })
    }
}
