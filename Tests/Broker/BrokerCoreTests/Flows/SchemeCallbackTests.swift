import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// By custom scheme the same rules from the path on, and an address that the desktop has rewritten is
/// the same address.
@Suite(.timeLimit(.minutes(5))) struct `A callback by a scheme` {
    private func house(_ redirectURI: String) async throws -> House {
        let house = try await House()
        var account = House.account()
        account.redirectURI = redirectURI
        await house.broker.configure([account])
        return house
    }

    private func ignored(_ verdict: CallbackVerdict) -> Bool { if case .ignored = verdict { true } else { false } }

    @Test(arguments: [
        ("org.example.app:/cb", "org.example.app:/cb"), ("org.example.app:/cb", "ORG.Example.App:/cb"),
        ("org.example.app:/cb", "org.example.app:/cb/"), ("swisscoin://auth-callback", "SwissCoin://Auth-Callback"),
        ("swisscoin://auth-callback", "swisscoin://auth-callback/"),
        ("swisscoin://auth-callback/", "swisscoin://auth-callback"),
        ("org.example.app://", "org.example.app:"),
    ])
    func `is taken however the desktop writes its address`(redirectURI: String, arrived: String) async throws {
        let house = try await house(redirectURI)
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(flow.redirectURI == redirectURI)
        let callback = try house.provider.consent(flow.authorizationURL)
        let query = callback.dropFirst(redirectURI.count)
        #expect(await house.broker.receive(arrived + query) == .completed(flow: flow.id))
        // The provider compares what it is told with what it was asked, byte for byte.
        #expect(house.provider.requests.last { $0.form["redirect_uri"] != nil }?.form["redirect_uri"] == redirectURI)
    }

    @Test(arguments: [
        ("org.example.app:/cb", "org.example.app:/CB"), ("org.example.app:/cb", "org.example.app://cb"),
        ("org.example.app:/cb", "org.example.app2:/cb"), ("org.example.app:/cb", "org.example.app:/cb//"),
        ("org.example.app:/cb", "http://127.0.0.1:4711/callback/work"),
        ("http://127.0.0.1:8400/cb", "http://127.0.0.1:8400/cb/"),
    ])
    func `NAT-04, NAT-18: at another address changes nothing`(redirectURI: String, arrived: String) async throws {
        let house = try await house(redirectURI)
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        #expect(ignored(await house.broker.receive(arrived + callback.dropFirst(redirectURI.count))))
        #expect(house.provider.count(.token) == 0)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
    }

    @Test func `SC-06: a page's inventions change nothing, however many`() async throws {
        let house = try await house("org.example.app:/cb")
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        for number in 0..<1_000 {
            #expect(ignored(await house.broker.receive("org.example.app:/cb?code=c\(number)&state=s\(number)")))
        }
        for tail in ["", "?code=a", "?error=access_denied", "?code=a&state=", "#access_token=a&state=b"] {
            #expect(ignored(await house.broker.receive("org.example.app:/cb" + tail)))
        }
        #expect(house.provider.count(.token) == 0)
        #expect(try await house.broker.flow(flow.id).status == .pending)
    }
}
