import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A service at an MCP server` {
    private static func house(
        _ grant: ServiceGrant = ServiceGrant(.clientCredentials), issuer: String? = "https://id.example",
        scopes: [String] = []
    ) async throws -> MCPHouse {
        let house = try await MCPHouse { account, kind in
            account.clientID = "robot"
            account.scopes = scopes
            kind.issuer = issuer
            kind.rules.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
            kind.rules.grant = grant
        }
        // No user signs in: the server need not know of PKCE, nor of an authorization endpoint.
        house.provider.behave { manners in
            manners.metadata["code_challenge_methods_supported"] = .some(nil)
            manners.metadata["authorization_endpoint"] = .some(nil)
            manners.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        }
        return house
    }

    private static func announce(_ house: MCPHouse, _ issuers: [String], scopes: [String] = ["mcp:read"]) {
        house.network.announce { announced in
            announced.challenge = nil
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": .array(issuers.map { .string($0) }),
                "scopes_supported": .array(scopes.map { .string($0) }),
            ]
        }
    }

    private static func forms(_ provider: FakeProvider) -> [[String: String]] {
        provider.requests.filter { $0.endpoint == .token }.map(\.form)
    }

    @Test func `asks the server first, then its issuer, for its scopes and the resource`() async throws {
        let house = try await Self.house()
        #expect(try await house.token().hasPrefix("access-"))
        #expect(
            house.network.urls == [
                "POST https://mcp.example/mcp",
                "GET https://mcp.example/.well-known/oauth-protected-resource/mcp",
                "GET https://id.example/.well-known/oauth-authorization-server", "POST https://id.example/token",
            ])
        #expect(
            Self.forms(house.provider) == [
                [
                    "grant_type": "client_credentials", "scope": "mcp:read", "resource": "https://mcp.example/mcp",
                    "client_id": "robot", "client_secret": "hush-secret",
                ]
            ])
        #expect(await house.vault.log.isEmpty)
        let start = try await house.broker.begin(House.name, SignInRequest())
        #expect(start.flow == nil)
    }

    @Test func `remembers what the server announced, and asks again if its token was refused`() async throws {
        let house = try await Self.house()
        _ = try await house.token()
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        let probes = house.network.requests(to: "/mcp").count
        #expect(probes == 2 && Self.forms(house.provider).count == 2)
        Self.announce(house, ["https://id.example"], scopes: ["mcp:admin"])
        _ = try await house.broker.refresh(House.name, isForced: true)
        #expect(Self.forms(house.provider).last?["scope"] == "mcp:admin")
    }

    @Test func `asks again if the request was refused, and repeats it if something else is announced`() async throws {
        let house = try await Self.house()
        _ = try await house.token()
        Self.announce(house, ["https://id.example"], scopes: ["mcp:other"])
        house.provider.script(.token, .status(400, #"{"error":"invalid_scope"}"#))
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(Self.forms(house.provider).map { $0["scope"] } == ["mcp:read", "mcp:read", "mcp:other"])
        house.provider.script(.token, .status(400, #"{"error":"invalid_scope"}"#))
        house.clock.advance(by: 3_600)
        let failure = await thrown(by: try await house.token())
        #expect(failure == .serviceRefused(House.name, code: "invalid_scope", message: nil))
        #expect(Self.forms(house.provider).count == 4)
    }

    @Test func `sends its secret to no issuer that only the server names`() async throws {
        let unpinned = try await Self.house(issuer: nil)
        guard case .unusableSetting(let setting)? = await thrown(by: try await unpinned.token()) else {
            throw Unexpected()
        }
        #expect(setting.setting == "issuer" && unpinned.network.requests.isEmpty)
        let house = try await Self.house()
        Self.announce(house, ["https://other.example"])
        guard case .misconfigured(let reason)? = await thrown(by: try await house.token()) else { throw Unexpected() }
        #expect(
            reason.oauth
                == .mcpOtherIssuer(House.name, configured: "https://id.example", announced: "https://other.example"))
        #expect(house.other.requests.isEmpty && house.provider.requests.isEmpty)
        // Nor later, when it has a token.
        let moved = try await Self.house()
        _ = try await moved.token()
        Self.announce(moved, ["https://other.example"])
        moved.provider.script(.token, .status(400, #"{"error":"invalid_target"}"#))
        moved.clock.advance(by: 3_600)
        _ = await thrown(by: try await moved.token())
        #expect(moved.other.requests.isEmpty)
    }

    @Test func `has its own scopes, and no resource where the issuer refuses one`() async throws {
        let house = try await Self.house(scopes: ["chosen"])
        try await house.configure { account, kind in
            account.clientID = "robot"
            account.scopes = ["chosen"]
            kind.issuer = "https://id.example"
            kind.sendsResource = false
            kind.rules.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
            kind.rules.grant = ServiceGrant(.clientCredentials, audience: "mcp")
        }
        _ = try await house.token()
        let form = try #require(Self.forms(house.provider).last)
        #expect(form["scope"] == "chosen" && form["resource"] == nil && form["audience"] == "mcp")
    }

    @Test(arguments: [ServiceGrantType.jwtBearer, .tokenExchange])
    func `exchanges a workload's token`(type: ServiceGrantType) async throws {
        let source = ServiceGrant.AssertionSource { _ throws(BrokerError) in
            do throws(OAuthError) { return try Assertion(parsing: Secret("one.two.three")) } catch {
                throw .misconfigured(.any)
            }
        }
        let house = try await Self.house(ServiceGrant(type, assertion: source, assertionPlace: "/token"))
        _ = try await house.token()
        let form = try #require(Self.forms(house.provider).last)
        #expect(form[type == .jwtBearer ? "assertion" : "subject_token"] == "one.two.three")
        #expect(form["resource"] == "https://mcp.example/mcp" && form["scope"] == "mcp:read")
    }

    @Test func `revokes its tokens where it got them`() async throws {
        let house = try await Self.house()
        let token = try await house.token()
        _ = try await house.broker.signOut(House.name)
        #expect(house.provider.revoked == [token])
        #expect(try await house.token() != token)
    }

    @Test func `is diagnosed without a sign-in`() async throws {
        let house = try await Self.house()
        _ = try await house.token()
        let found = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(
            found.contains {
                $0.message.oauth
                    == .mcpAnnounces(
                        host: "mcp.example", issuer: "https://id.example", client: .configured, scopes: ["mcp:read"])
                    && $0.stated == "https://id.example"
            })
        #expect(found.contains { $0.message.oauth == .mcpAcceptsToken(host: "mcp.example") })
        #expect(found.allSatisfy { $0.level == .ok && $0.check != .redirect }, "\(found)")
        house.network.announce { $0.tokenStatus = 401 }
        let refused = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(refused.contains { $0.level == .wrong && $0.cause == .configuration })
    }
}
