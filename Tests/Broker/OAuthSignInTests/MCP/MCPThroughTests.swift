import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// An MCP server whose authorization server takes assertions of the provider that the user is signed in at.
private struct Company {
    static let linear = House.named("linear")
    static let prefix = "urn:ietf:params:oauth:"
    let house: MCPHouse

    init(signsIn: Bool = true) async throws {
        house = try await MCPHouse()
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://other.example"],
            ]
        }
        let broker = house.broker
        var rules = OAuthAccount(endpoints: .issuer("https://mcp.example"))
        rules.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
        rules.grant = ServiceGrant(
            through: House.name,
            ServiceGrant.AssertionSource { use throws(BrokerError) in
                try await use.assertion(ofUserOf: House.name, by: broker)
            })
        var kind = MCPAccount(server: try MCPServer(parsing: MCPNetwork.server), rules: rules)
        kind.issuer = "https://other.example"
        let linear = Account(name: Self.linear, provider: "mcp", source: "test", kind: kind, clientID: "at-linear")
        await broker.configure([House.account(), linear])
        if signsIn { try await signIn() }
    }

    func signIn(as subject: String = "alice") async throws {
        let flow = try await house.broker.signIn(House.name, SignInRequest(switchesSubject: true)).flow
        guard
            case .completed = await house.broker.receive(try house.provider.consent(flow.authorizationURL, as: subject))
        else { throw Unexpected() }
    }

    func token() async throws(BrokerError) -> String {
        try await house.broker.session(Self.linear, SessionQuery()).token.value.revealed()
    }

    func failure() async -> BrokerError? { await thrown(by: try await token()) }

    /// The exchanges at the provider of the sign-in.
    var exchanges: [[String: String]] {
        house.provider.requests.filter { $0.endpoint == .token && $0.form["subject_token"] != nil }.map(\.form)
    }

    /// What came to the authorization server of the MCP server.
    var grants: [[String: String]] { house.other.requests.filter { $0.endpoint == .token }.map(\.form) }

    var view: AccountView { get async throws { try await house.broker.account(Self.linear) } }
}

@Suite(.timeLimit(.minutes(1))) struct `An account through another one's sign-in` {
    @Test func `exchanges the ID token for an assertion, and that for a token`() async throws {
        let company = try await Company()
        let idToken = try await company.house.broker.session(House.name, SessionQuery(kind: .idToken)).token.value
        #expect(try await company.token().hasPrefix("access-"))
        #expect(
            company.exchanges == [
                [
                    "grant_type": "\(Company.prefix)grant-type:token-exchange", "subject_token": idToken.revealed(),
                    "subject_token_type": "\(Company.prefix)token-type:id_token",
                    "requested_token_type": "\(Company.prefix)token-type:id-jag", "audience": "https://other.example",
                    "resource": "https://mcp.example/mcp", "scope": "mcp:read", "client_id": "ringback",
                ]
            ])
        let grant = try #require(company.grants.first)
        #expect(grant["grant_type"] == "\(Company.prefix)grant-type:jwt-bearer")
        #expect(grant["assertion"]?.hasPrefix("jag-") == true && grant["subject_token"] == nil)
        #expect(company.grants.count == 1)
        let view = try await company.view
        #expect(view.state == .authenticated && view.grant == "jwt_bearer" && view.kind.upstream == House.name)
        // The other server's secret was shown to it alone, and nothing of the user's session was.
        #expect(company.house.provider.requests.allSatisfy { !$0.form.values.contains("hush-secret") })
        #expect(company.house.other.requests.allSatisfy { !$0.form.values.contains(idToken.revealed()) })
    }

    @Test func `uses an assertion until it ends, and writes none to the vault`() async throws {
        let company = try await Company()
        _ = try await company.token()
        _ = try await company.house.broker.refresh(Company.linear, isForced: true)
        #expect(company.exchanges.count == 1 && company.grants.count == 2)
        company.house.clock.advance(by: 290)
        _ = try await company.house.broker.refresh(Company.linear, isForced: true)
        #expect(company.exchanges.count == 2)
        let stored = await company.house.vault.sessions
        #expect(!stored.isEmpty && stored.allSatisfy { $0.tokens.count == 1 })
    }

    @Test func `gets another assertion for a refused one, once`() async throws {
        let company = try await Company()
        company.house.other.script(.token, .invalidGrant)
        #expect(try await company.token().hasPrefix("access-"))
        #expect(company.exchanges.count == 2 && Set(company.grants.compactMap { $0["assertion"] }).count == 2)
        company.house.other.script(.token, .invalidGrant, .invalidGrant)
        let failure = await thrown(by: try await company.house.broker.refresh(Company.linear, isForced: true))
        #expect(failure == .serviceRefused(Company.linear, code: "invalid_grant", message: nil))
        #expect(company.grants.count == 4)
    }

    @Test func `refreshes the sign-in for a fresh ID token first`() async throws {
        let company = try await Company()
        company.house.clock.advance(by: 3_600)
        _ = try await company.token()
        #expect(company.house.provider.presented == ["refresh-2"])
        #expect(company.exchanges.map { $0["subject_token_type"] } == ["\(Company.prefix)token-type:id_token"])
    }

    @Test func `shows the refresh token where no fresh ID token comes, and keeps what is known of its rotation`()
        async throws
    {
        let company = try await Company()
        company.house.provider.behave { $0.idTokenOnRefresh = false }
        company.house.clock.advance(by: 3_600)
        _ = try await company.token()
        let exchange = try #require(company.exchanges.last)
        #expect(exchange["subject_token_type"] == "\(Company.prefix)token-type:refresh_token")
        let held = try #require(await company.house.broker.signInContext.sessions.held(House.name))
        #expect(exchange["subject_token"] == held.refreshToken?.revealed() && held.rotation == .rotates)
        // The next assertion costs no refresh: it would bring no ID token either.
        let refreshes = company.house.provider.presented.count
        company.house.clock.advance(by: 400)
        _ = try await company.house.broker.refresh(Company.linear, isForced: true)
        #expect(company.exchanges.count == 2 && company.house.provider.presented.count == refreshes)
        // The session goes on.
        company.house.clock.advance(by: 3_600)
        _ = try await company.house.broker.session(House.name, SessionQuery())
        #expect(company.house.provider.presented.count == refreshes + 1)
    }

    @Test func `is served by an ID token alone, without a refresh token`() async throws {
        let company = try await Company(signsIn: false)
        company.house.provider.behave { $0.givesRefreshToken = false }
        try await company.signIn()
        #expect(try await company.token().hasPrefix("access-"))
    }

    @Test func `is not signed in while the other one is not, and says which`() async throws {
        let company = try await Company(signsIn: false)
        #expect(await eventually { (try? await company.view.state) == .unauthenticated })
        #expect(try await company.view.error == .signInRequired(House.name))
        #expect(await company.failure() == .signInRequired(House.name))
        let failure = await thrown(by: try await company.house.broker.begin(Company.linear, SignInRequest()))
        #expect(failure == .signInRequired(House.name))
        try await company.signIn()
        #expect(try await company.token().hasPrefix("access-"))
        let view = try await company.view
        #expect(view.state == .authenticated && view.error == nil)
    }

    @Test func `waits for the other one's sign-in, if a user is there`() async throws {
        let company = try await Company(signsIn: false)
        let broker = company.house.broker
        let waiting = Task { try await broker.sessionAfterSignIn(Company.linear, SessionQuery()).token.value }
        #expect(await eventually { (try? await broker.account(House.name).flow) != nil })
        let flow = try #require(try await broker.account(House.name).flow)
        _ = await broker.receive(try company.house.provider.consent(flow.authorizationURL))
        #expect(try await waiting.value.revealed().hasPrefix("access-"))
    }

    @Test func `ends with the other one's sign-in`() async throws {
        let company = try await Company()
        let token = try await company.token()
        _ = try await company.house.broker.signOut(House.name)
        #expect(await eventually { company.house.other.revoked == [token] })
        #expect(company.house.broker.snapshot.current("linear") == nil)
        #expect(try await company.view.state == .unauthenticated)
        #expect(await company.failure() == .signInRequired(House.name))
        #expect(company.exchanges.count == 1)
        // Another user's sign-in brings that user's tokens.
        try await company.signIn(as: "bob")
        let other = try await company.token()
        #expect(other != token && company.exchanges.count == 2)
    }

    @Test func `begins anew when another user signs in, or the provider ends the session`() async throws {
        let company = try await Company()
        let token = try await company.token()
        try await company.signIn(as: "bob")
        #expect(await eventually { company.house.other.revoked == [token] })
        #expect(try await company.token() != token)
        company.house.clock.advance(by: 3_600)
        company.house.provider.script(.token, .invalidGrant)
        _ = await thrown(by: try await company.house.broker.session(House.name, SessionQuery()))
        #expect(await eventually { (try? await company.view.state) == .unauthenticated })
        guard case .sessionExpired(House.name, _, _, _)? = await company.failure() else { throw Unexpected() }
    }

    @Test(arguments: [true, false]) func `asks for a stronger sign-in of the other one`(atProvider: Bool) async throws {
        let company = try await Company()
        let body = """
            {"error":"insufficient_user_authentication","acr_values":"urn:mfa phr","max_age":300,
            "error_description":"more"}
            """
        (atProvider ? company.house.provider : company.house.other).script(.token, .status(400, body))
        #expect(
            await company.failure() == .stepUpRequired(House.name, acrValues: "urn:mfa phr", maxAge: 300))
        #expect(try await company.house.broker.account(House.name).state == .authenticated)
        try await company.signIn()
        #expect(try await company.token().hasPrefix("access-"))
    }

    @Test func `names the other one where its provider gives no assertion`() async throws {
        let company = try await Company()
        company.house.provider.script(.token, .status(400, #"{"error":"unauthorized_client"}"#))
        #expect(
            await company.failure()
                == .upstream(House.name, .provider(.refused(code: "unauthorized_client", message: nil))))
        company.house.provider.script(.token, .setting("token_type", "Bearer"))
        company.house.clock.advance(by: 60)
        guard case .upstream(House.name, .provider(.invalidResponse))? = await company.failure() else {
            throw Unexpected()
        }
        #expect(company.grants.isEmpty)
    }

    @Test func `sends no assertion to an authorization server that only the MCP server names`() async throws {
        let company = try await Company()
        company.house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://id.example"],
            ]
        }
        guard case .misconfigured(let reason)? = await company.failure(), case .mcpOtherIssuer? = reason.oauth else {
            throw Unexpected()
        }
        #expect(company.exchanges.isEmpty && company.grants.isEmpty)
    }

    @Test func `is warned of an authorization server that lists other grants alone`() async throws {
        let company = try await Company()
        company.house.other.behave { $0.metadata["authorization_grant_profiles_supported"] = ["urn:other"] }
        let found = try await Diagnostics(of: company.house.broker).findings(of: Company.linear)
        #expect(found.contains { $0.setting == "through" && $0.level == .warning })
    }
}
