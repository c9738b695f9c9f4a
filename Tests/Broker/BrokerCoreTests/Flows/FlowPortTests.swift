import OAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `A callback's port by the caller's wish` {
    private func redirect(_ configured: String?, _ port: Int?) throws(BrokerError) -> String? {
        var account = House.account()
        account.redirectURI = configured
        var request = SignInRequest()
        request.callbackPort = port
        return try request.atCallbackPort(account).redirectURI
    }

    @Test(arguments: [
        (String?.none, "http://127.0.0.1:8400/callback/work"), ("http://localhost:{port}", "http://localhost:8400"),
        ("http://127.0.0.1:0/cb?a=:0", "http://127.0.0.1:8400/cb?a=:0"),
        ("http://[::1]:{port}/x", "http://[::1]:8400/x"),
        ("http://127.0.0.1:8400/cb", "http://127.0.0.1:8400/cb"),
    ])
    func `it takes a free port's place`(_ configured: String?, _ expected: String) throws {
        #expect(try redirect(configured, 8_400) == expected)
        #expect(try redirect(configured, nil) == configured)
    }

    @Test(
        arguments: [
            ("http://127.0.0.1:8401/cb", 8_401), ("myapp://callback", nil), ("https://app.example.org/cb", nil),
            ("http://127.0.0.1/cb", 80),
        ] as [(String, Int?)])
    func `it does not take another's`(_ configured: String, _ fixed: Int?) async throws {
        let failure = await error { () throws(BrokerError) in try redirect(configured, 8_400) }
        let reason: RequestReason =
            fixed.map { .portFixed(House.name, port: $0) } ?? .callbackElsewhere(House.name)
        #expect(failure == .invalid(field: "callback_port", reason: .request(reason)))
    }

    @Test func `a sign-in at another port is another sign-in`() async throws {
        let house = try await House()
        var request = SignInRequest()
        request.callbackPort = 8_400
        let flow = try await house.broker.signIn(House.name, request).flow
        #expect(flow.redirectURI == "http://127.0.0.1:8400/callback/work")
        #expect(try await house.broker.signIn(House.name, request).flow.id == flow.id)
        let other = await error { () throws(BrokerError) in
            try await house.broker.signIn(House.name, SignInRequest())
        }
        guard case .conflict? = other else { throw Unexpected() }
        guard case .completed = await house.broker.receive(try house.provider.consent(flow.authorizationURL)) else {
            throw Unexpected()
        }
    }
}
