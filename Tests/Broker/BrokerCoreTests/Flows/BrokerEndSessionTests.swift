import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `The page that ends the session at the provider` {
    private func house(endpoint: JSON? = "https://id.example/logout?x=1", signedIn: Bool = true) async throws -> House {
        let house = try await House()
        house.provider.behave { $0.metadata["end_session_endpoint"] = endpoint }
        if signedIn { try await house.signIn() }
        return house
    }

    /// However busy the machine is.
    private func asked(
        _ house: House, saysWho: Bool = true, maySayIDToken: Bool = true
    ) async throws(BrokerError) -> EndSessionPage? {
        try await house.broker.endSessionPage(
            of: try await house.broker.ending(of: House.name), saysWho: saysWho, maySayIDToken: maySayIDToken,
            waitingAtMost: .seconds(120))
    }

    private func pairs(_ page: EndSessionPage?) throws -> [String: String] {
        let query = try WebURL(parsing: try #require(page).url).query ?? ""
        return Dictionary(try FormEncoding.parse(query).map { ($0.name, $0.value) }) { _, _ in "twice" }
    }

    @Test func `OIDF-40: names the client and the person, and is told to the audit as an ID token`() async throws {
        let house = try await house()
        let page = try await asked(house)
        let pairs = try pairs(page)
        #expect(pairs["client_id"] == "ringback" && pairs["x"] == "1" && pairs["state"]?.utf8.count ?? 0 >= 20)
        #expect(pairs["id_token_hint"]?.split(separator: ".").count == 3)
        #expect(page?.shown?.token.value.revealed() == pairs["id_token_hint"])
        // The session is as it was: ending it is another step.
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `holds no ID token for who may not have it, nobody at all if asked so`() async throws {
        let house = try await house()
        let page = try await asked(house, saysWho: true, maySayIDToken: false)
        let named = try pairs(page)
        #expect(page?.shown == nil && named["id_token_hint"] == nil && named["client_id"] == "ringback")
        let plain = try await asked(house, saysWho: false, maySayIDToken: true)
        #expect(Set(try pairs(plain).keys) == ["x", "client_id", "state"])
    }

    @Test func `sends no ID token to a place that is neither the issuer's nor the token endpoint's`() async throws {
        let house = try await house(endpoint: "https://elsewhere.example/logout")
        let page = try await asked(house)
        #expect(page?.shown == nil && page?.url.hasPrefix("https://elsewhere.example/logout?client_id=") == true)
    }

    @Test func `is there without a session, for the browser may have one`() async throws {
        let house = try await house(signedIn: false)
        let page = try await asked(house)
        #expect(Set(try pairs(page).keys) == ["x", "client_id", "state"])
    }

    @Test func `sends the browser where the configuration says`() async throws {
        let house = try await house()
        var account = House.account()
        account.postLogoutRedirectURI = "https://app.example.org/bye"
        await house.broker.configure([account])
        let page = try await asked(house)
        #expect(try pairs(page)["post_logout_redirect_uri"] == "https://app.example.org/bye")
    }

    @Test func `is not there where the provider has none`() async throws {
        let house = try await house(endpoint: nil)
        #expect(try await asked(house) == nil)
    }

    @Test func `of a provider that does not answer is an error, soon`() async throws {
        let house = try await house(signedIn: false)
        house.provider.script(.metadata, .fail(.timedOut(host: "id.example")), .fail(.timedOut(host: "id.example")))
        let refused = await error { () throws(BrokerError) in
            try await asked(house)
        }
        guard case .provider(.unreachable)? = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
    }
}
