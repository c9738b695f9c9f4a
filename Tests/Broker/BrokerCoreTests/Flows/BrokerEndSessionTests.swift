import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

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
        let refused = await error { try await asked(house) }
        guard case .provider(.unreachable)? = refused else { throw Unexpected(refused) }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `What is told to those who can show a person something` {
    private func wait(_ house: House, within bound: Duration) async -> BrokerError? {
        let query = SessionQuery { $0.timeout = bound }
        return await error { try await house.broker.sessionAfterSignIn(House.name, query) }
    }

    private func wanted(_ house: House) -> Int { house.facts.names.count { $0 == "signInWanted" } }

    @Test func `a program waits for a sign-in that nobody was asked for`() async throws {
        let house = try await House()
        async let first = wait(house, within: .seconds(50))
        #expect(await eventually { wanted(house) == 1 })
        async let second = wait(house, within: .seconds(50))
        #expect(await eventually { wanted(house) == 2 })
        let flow = try #require(await house.broker.flows().first)
        _ = await house.broker.receive(try house.provider.consent(flow.authorizationURL))
        #expect(await [first, second] == [nil, nil])
    }

    @Test func `who waits, as the program calls itself, and what the account is called`() async throws {
        let house = try await House()
        var account = House.account()
        account.page.displayName = "Swisscoin"
        await house.broker.configure([account])
        let query = SessionQuery { ($0.timeout, $0.program) = (.seconds(50), "git") }
        async let waiting = error { try await house.broker.sessionAfterSignIn(House.name, query) }
        let isTold = await eventually {
            house.facts.all.contains { fact in
                if case .signInWanted(House.name, by: "git") = fact { true } else { false }
            }
        }
        #expect(isTold)
        let flow = try #require(await house.broker.flows().first)
        #expect(flow.displayName == "Swisscoin" && flow.providerHost == "id.example")
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        #expect(await waiting != nil)
    }

    @Test func `nothing while somebody has asked for the sign-in and shows its page`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(await wait(house, within: .milliseconds(10)) == .timedOut)
        #expect(wanted(house) == 0)
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        // Whoever cancelled it does not want to be asked.
        #expect(await wait(house, within: .milliseconds(10)) == .signInRequired(House.name))
        #expect(wanted(house) == 0)
    }
}
