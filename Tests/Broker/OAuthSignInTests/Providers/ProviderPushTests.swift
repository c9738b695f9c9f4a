import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `Sign-ins at providers that want more` {
    private func house(_ metadata: [String: JSON], _ change: (inout Account) -> Void = { _ in }) async throws -> House {
        let house = try await House(change)
        house.provider.behave { manners in
            for (name, value) in metadata { manners.metadata[name] = value }
        }
        return house
    }

    private let endpoint: JSON = "https://id.example/par"

    @Test func `PAR-03 PAR-05: a request is pushed where offered, and the browser carries a reference`() async throws {
        for isRequired in [false, true] {
            let house = try await house([
                "pushed_authorization_request_endpoint": endpoint,
                "require_pushed_authorization_requests": .bool(isRequired),
            ])
            let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
            let query = try FormEncoding.parse(WebURL(parsing: flow.authorizationURL).query ?? "")
            #expect(query.map(\.name) == ["response_type", "client_id", "request_uri"])
            guard case .completed = await house.broker.receive(try house.provider.consent(flow.authorizationURL))
            else { throw Unexpected() }
            let form = try #require(house.provider.requests.first { $0.endpoint == .pushed }?.form)
            #expect(form["client_id"] == "ringback" && form["redirect_uri"] == flow.redirectURI)
            #expect(form["state"]?.isEmpty == false && form["code_challenge_method"] == "S256")
        }
    }

    @Test func `PAR-04: each sign-in pushes its own`() async throws {
        let house = try await house(["pushed_authorization_request_endpoint": endpoint])
        try await house.signIn()
        try await house.signIn()
        let states = house.provider.requests.filter { $0.endpoint == .pushed }.map { $0.form["state"] }
        #expect(states.count == 2 && states[0] != states[1])
    }

    @Test func `an endpoint that is offered but not there is done without, unless it is required`() async throws {
        for isRequired in [false, true] {
            let house = try await house([
                "pushed_authorization_request_endpoint": endpoint,
                "require_pushed_authorization_requests": .bool(isRequired),
            ])
            house.provider.script(.pushed, .status(404))
            let failure = await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))
            #expect((failure != nil) == isRequired)
            #expect(house.doors.closed.count == (isRequired ? 1 : 0))
        }
    }

    @Test func `a refused client or a failed required push ends the sign-in before the browser opens`() async throws {
        for (turn, isRequired) in [
            (.answer(400, #"{"error":"invalid_client"}"#, []), false), (.status(403), false), (.status(401), true),
            (.answer(400, #"{"error":"invalid_request"}"#, []), true), (.status(503), true),
        ] as [(FakeProvider.Turn, Bool)] {
            let house = try await house([
                "pushed_authorization_request_endpoint": endpoint,
                "require_pushed_authorization_requests": .bool(isRequired),
            ])
            house.provider.script(.pushed, turn)
            let failure = await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))
            #expect(failure != nil)
            #expect(house.doors.opened == house.doors.closed.count)
        }
    }

    /// After an outage the next sign-in pushes again.
    @Test
    func `where pushing is optional and fails, the request goes through the browser, and later where it was refused`()
        async throws
    {
        for (turn, pushes) in [
            (.answer(400, #"{"error":"invalid_request"}"#, []), 1), (.answer(200, "{}", []), 1), (.status(503), 2),
            (.answer(401, #"{"error":"invalid_client"}"#, []), 1), (.status(401), 1),
            (.fail(.unreachable(host: "id.example", reason: "gone")), 2),
        ] as [(FakeProvider.Turn, Int)] {
            let house = try await house(["pushed_authorization_request_endpoint": endpoint])
            house.provider.script(.pushed, turn)
            try await house.signIn()
            try await house.signIn()
            #expect(house.provider.count(.pushed) == pushes)
        }
    }

    @Test func `pushed_authorization_requests decides where it is said`() async throws {
        let never = try await house(["pushed_authorization_request_endpoint": endpoint]) {
            $0.oauth.pushedRequests = .never
        }
        try await never.signIn()
        #expect(never.provider.count(.pushed) == 0)
        let required = try await house(["pushed_authorization_request_endpoint": endpoint]) {
            $0.oauth.pushedRequests = .required
        }
        required.provider.script(.pushed, .status(404))
        let failure = await thrown(by: try await required.broker.signIn(House.name, SignInRequest()))
        #expect(failure != nil)
        let absent = try await house([:]) { $0.oauth.pushedRequests = .required }
        let missing = await thrown(by: try await absent.broker.signIn(House.name, SignInRequest()))
        #expect(missing?.kind == "unusableSetting")
    }

    @Test func `a provider that requires it and has no endpoint is misconfigured`() async throws {
        let house = try await house(["require_pushed_authorization_requests": true])
        let failure = await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))
        #expect(failure?.kind == "misconfigured")
    }

    @Test func `FP-01: an answer to a form_post request counts as a form, and in an address`() async throws {
        let house = try await house(["response_modes_supported": ["query", "form_post"]]) {
            $0.oauth.responseMode = .formPost
        }
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(flow.authorizationURL.contains("response_mode=form_post"))
        let callback = try house.provider.consent(flow.authorizationURL)
        let parts = callback.split(separator: "?", maxSplits: 1)
        let verdict = await house.broker.receive(String(parts[0]), form: Array(parts[1].utf8))
        guard case .completed = verdict else { throw Unexpected() }
        let second = try await house.broker.signIn(House.name, SignInRequest()).flow
        guard case .completed = await house.broker.receive(try house.provider.consent(second.authorizationURL))
        else { throw Unexpected() }
    }

    @Test func `a response mode that the metadata do not list is refused`() async throws {
        let excluding = try await house(["response_modes_supported": ["query", "fragment"]]) {
            $0.oauth.responseMode = .formPost
        }
        let failure = await thrown(by: try await excluding.broker.signIn(House.name, SignInRequest()))
        #expect(failure?.kind == "unusableSetting")
        let silent = try await house([:]) { $0.oauth.responseMode = .formPost }
        let unlisted = await thrown(by: try await silent.broker.signIn(House.name, SignInRequest()))
        #expect(unlisted?.kind == "unusableSetting")
    }

    @Test func `NAT-30 PAR-06: a client's key signs a statement of its own for every request`() async throws {
        // RFC 7515 appendix A.3.
        let key = try ClientKey(
            parsing: Secret(
                """
                {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",\
                "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}
                """))
        let house = try await house(["pushed_authorization_request_endpoint": endpoint]) {
            $0.oauth.clientKey = Account.KeySource { () throws(BrokerError) in key }
        }
        try await house.signIn()
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        _ = try await house.broker.signOut(House.name)
        let forms = house.provider.requests.filter { [.token, .pushed, .revocation].contains($0.endpoint) }.map(\.form)
        #expect(forms.count >= 4)
        #expect(Set(forms.map { $0["client_assertion"] ?? "" }).count == forms.count)
        #expect(forms.allSatisfy { $0["client_id"] == "ringback" && $0["client_assertion"]?.isEmpty == false })
    }

    @Test func `a key that cannot be read ends the sign-in before the browser opens`() async throws {
        let house = try await house([:]) {
            $0.oauth.clientKey = Account.KeySource { () throws(BrokerError) in throw .misconfigured(.any) }
        }
        let failure = await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))
        #expect(failure == .misconfigured(.any))
    }
}
