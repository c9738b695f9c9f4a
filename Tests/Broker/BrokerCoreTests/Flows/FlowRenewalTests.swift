import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `The address of a pushed request` {
    /// A pushed sign-in that is open, and its house. References live for a minute.
    private func open(isRequired: Bool = true) async throws -> (house: House, flow: FlowView) {
        let house = try await House()
        house.provider.behave { manners in
            manners.metadata["pushed_authorization_request_endpoint"] = "https://id.example/par"
            manners.metadata["require_pushed_authorization_requests"] = .bool(isRequired)
        }
        return (house, try await house.broker.signIn(House.name, SignInRequest()).flow)
    }

    private func pushed(_ house: House) -> [[String: String]] {
        house.provider.requests.filter { $0.endpoint == .pushed }.map(\.form)
    }

    @Test func `PAR-07: one that has lapsed is replaced when it is asked for, and stays one flow`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 40)
        #expect(try await house.broker.flow(flow.id, waiting: .zero).authorizationURL == flow.authorizationURL)
        house.clock.advance(by: 15)
        let renewed = try await house.broker.flow(flow.id, waiting: .zero)
        #expect(renewed.id == flow.id && renewed.authorizationURL != flow.authorizationURL)
        #expect(renewed.expiresAt == flow.expiresAt && renewed.redirectURI == flow.redirectURI)
        #expect(try await house.broker.flow(flow.id, waiting: .zero).authorizationURL == renewed.authorizationURL)
        #expect(await house.broker.flows().map(\.authorizationURL) == [renewed.authorizationURL])
        let forms = pushed(house)
        #expect(forms.count == 2 && forms[0] == forms[1])
        #expect(try await house.finish(renewed) == .completed(flow: renewed.id))
        #expect(try await house.broker.flow(flow.id, waiting: .zero).status == .completed)
        house.clock.advance(by: 60)
        _ = try await house.broker.flow(flow.id, waiting: .zero)
        #expect(pushed(house).count == 2)
    }

    @Test func `a list of flows brings them up to date too`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 60)
        let urls = await house.broker.flows().map(\.authorizationURL)
        #expect(urls.count == 1 && urls != [flow.authorizationURL])
    }

    @Test func `who waits for the end asks the provider for nothing`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 60)
        _ = try await house.broker.flow(flow.id, waiting: .milliseconds(1))
        #expect(pushed(house).count == 1)
    }

    @Test func `PAR-04: who joins gets one that nobody has opened, and both lead back to one flow`() async throws {
        let (house, flow) = try await open()
        let twin = try await house.broker.signIn(House.name, SignInRequest())
        #expect(!twin.isNew && twin.flow.authorizationURL == flow.authorizationURL)
        house.clock.advance(by: 20)
        let joined = try await house.broker.signIn(House.name, SignInRequest())
        #expect(!joined.isNew && joined.flow.id == flow.id)
        #expect(joined.flow.authorizationURL != flow.authorizationURL)
        // The older one was open in a browser all the time.
        #expect(try await house.finish(flow) == .completed(flow: flow.id))
        #expect(try await house.finish(joined.flow) == .ended)
    }

    @Test func `many who come at once share one push`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 60)
        house.provider.hold(.pushed)
        let joining = (0..<8).map { _ in
            Task { try await house.broker.signIn(House.name, SignInRequest()).flow.authorizationURL }
        }
        let looking = Task { try await house.broker.flow(flow.id, waiting: .zero).authorizationURL }
        #expect(await house.provider.arrived(.pushed, 2))
        house.provider.release(.pushed)
        var urls: Set<String> = [try await looking.value]
        for task in joining { urls.insert(try await task.value) }
        #expect(urls.count == 1 && !urls.contains(flow.authorizationURL))
        #expect(pushed(house).count == 2)
    }

    @Test func `one that cannot be had is said to who joins, and does not end the flow of the others`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 60)
        house.provider.script(.pushed, .status(503), .status(503))
        let refusal = await error { try await house.broker.signIn(House.name, SignInRequest()) }
        guard case .provider(.unavailable(503, _)) = refusal else { throw Unexpected() }
        // Whoever looks a moment later sees the flow as it is, and the provider is left alone.
        #expect(try await house.broker.flow(flow.id, waiting: .zero).status == .pending)
        #expect(pushed(house).count == 2)
        house.clock.advance(by: 5)
        #expect(try await house.broker.flow(flow.id, waiting: .zero).authorizationURL == flow.authorizationURL)
        house.clock.advance(by: 5)
        let joined = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(joined.id == flow.id && joined.authorizationURL != flow.authorizationURL)
        #expect(try await house.finish(joined) == .completed(flow: joined.id))
    }

    @Test func `PAR-07: a provider that says when is not asked before`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 60)
        house.provider.script(.pushed, .status(429, retryAfter: 30))
        for seconds in [0, 10, 19] {
            house.clock.advance(by: seconds)
            let refusal = await error { try await house.broker.signIn(House.name, SignInRequest()) }
            #expect(refusal == .provider(.rateLimited(retryAfter: 30)))
        }
        #expect(pushed(house).count == 2)
        house.clock.advance(by: 1)
        let joined = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(joined.id == flow.id && joined.authorizationURL != flow.authorizationURL)
    }

    @Test func `while the last one counts, it is given to who joins, used or not`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 20)
        house.provider.script(.pushed, .fail(.unreachable(host: "id.example", reason: "gone")))
        let joined = try await house.broker.signIn(House.name, SignInRequest())
        #expect(joined.flow.authorizationURL == flow.authorizationURL)
    }

    @Test func `a provider that has given pushing up is asked the usual way`() async throws {
        let (house, flow) = try await open(isRequired: false)
        house.clock.advance(by: 60)
        house.provider.script(.pushed, .status(404))
        let renewed = try await house.broker.flow(flow.id, waiting: .zero)
        #expect(renewed.authorizationURL.contains("code_challenge="))
        #expect(try await house.finish(renewed) == .completed(flow: renewed.id))
    }

    @Test func `an address that is not pushed does for all`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        house.clock.advance(by: 300)
        let joined = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(joined.authorizationURL == flow.authorizationURL)
    }

    @Test func `the deadline's error says how long the address counted`() async throws {
        let (house, flow) = try await open()
        house.clock.advance(by: 601)
        #expect(try await house.finish(flow) == .expired(flow: flow.id))
        guard case .expired(.flowExpired(let reason)) = try await house.broker.flow(flow.id, waiting: .zero).status
        else { throw Unexpected() }
        #expect(
            reason.oauth
                == .noCallback(House.name, seconds: 600, redirectURI: flow.redirectURI, pushed: 60))
    }

    @Test func `endpoints by hand may have a place to push to`() async throws {
        let endpoints = try ProviderMetadata(
            authorizationEndpoint: "https://id.example/authorize", tokenEndpoint: "https://id.example/token",
            pushedAuthorizationRequestEndpoint: "https://id.example/par")
        let house = try await House { account in
            account.scopes = ["email"]
            account.oauth.endpoints = .fixed(endpoints)
        }
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(flow.authorizationURL.contains("request_uri="))
        #expect(try await house.finish(flow) == .completed(flow: flow.id))
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A provider whose ID tokens cannot be checked` {
    @Test(arguments: [["HS256"], ["HS512", "none"]] as [[JSON]])
    func `is refused before the browser opens, unless none are asked for`(algorithms: [JSON]) async throws {
        let house = try await House()
        house.provider.behave { $0.metadata["id_token_signing_alg_values_supported"] = .array(algorithms) }
        let refusal = await error { try await house.broker.signIn(House.name, SignInRequest()) }
        guard case .unusableSetting(let setting) = refusal else { throw Unexpected() }
        #expect(setting.setting == "scopes" && setting.reason.holds(algorithms[0].string ?? "?"))
        #expect(house.doors.opened == 0)
        _ = try await house.broker.signIn(House.name, SignInRequest(scopes: ["email"]))
        #expect(house.doors.opened == 1)
    }
}
