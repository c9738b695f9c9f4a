import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A sign-in at an MCP server` {
    @Test func `finds issuer, client and scopes, and names the resource in every request`() async throws {
        let house = try await MCPHouse()
        let query = try await house.signIn()
        #expect(query["client_id"] == "client-1" && query["resource"] == "https://mcp.example/mcp")
        #expect(query["scope"] == "mcp:read offline_access" && query["code_challenge_method"] == "S256")
        #expect(
            house.network.urls.prefix(4) == [
                "POST https://mcp.example/mcp",
                "GET https://mcp.example/.well-known/oauth-protected-resource/mcp",
                "GET https://id.example/.well-known/oauth-authorization-server", "POST https://id.example/register",
            ])
        let token = try await house.token()
        house.clock.advance(by: 3_600)
        #expect(try await house.token() != token)
        let forms = house.provider.requests.filter { $0.endpoint == .token }.map(\.form)
        #expect(forms.map { $0["grant_type"] } == ["authorization_code", "refresh_token"])
        #expect(forms.allSatisfy { $0["resource"] == "https://mcp.example/mcp" && $0["client_id"] == "client-1" })
    }

    @Test func `binds tokens to a key where the server and its issuer offer that`() async throws {
        let document: JSON = [
            "resource": "https://mcp.example/mcp", "authorization_servers": ["https://id.example"],
            "dpop_signing_alg_values_supported": ["ES256"],
        ]
        for (challenge, isInDocument, isIssuers, isBound) in [
            ("DPoP algs=\"ES256\", scope=\"mcp:read\"", false, true, true),
            ("Bearer scope=\"mcp:read\"", true, true, true),
            ("Bearer scope=\"mcp:read\"", false, true, false), ("DPoP scope=\"mcp:read\"", true, false, false),
        ] {
            let house = try await MCPHouse { _, kind in kind.rules.dpop = .automatic }
            house.network.announce { announced in
                announced.challenge = challenge
                if isInDocument { announced.documents["/.well-known/oauth-protected-resource/mcp"] = document }
            }
            if isIssuers { house.provider.behave { $0.metadata["dpop_signing_alg_values_supported"] = ["ES256"] } }
            if isBound { house.provider.script(.token, .setting("token_type", "DPoP")) }
            let query = try await house.signIn()
            let held = await house.broker.sessionManager.held(House.name)
            #expect((held?.proofKey != nil) == isBound && (query["dpop_jkt"] != nil) == isBound)
            house.clock.advance(by: 3_600)
            if isBound { house.provider.script(.token, .setting("token_type", "DPoP")) }
            _ = try await house.token()
            let tokens = house.provider.requests.filter { $0.endpoint == .token }
            #expect(tokens.count == 2 && tokens.allSatisfy { ($0.proof != nil) == isBound })
        }
    }

    @Test func `registers a native client once, with the very redirect URI`() async throws {
        let house = try await MCPHouse()
        let query = try await house.signIn()
        try await house.signIn()
        let registrations = house.network.requests(to: "/register")
        #expect(registrations.count == 1)
        let document = try JSON(parsing: registrations.first?.body?.revealedBytes() ?? [])
        #expect(document["application_type"] == "native" && document["redirect_uris"]?.array?.count == 1)
        #expect(document["redirect_uris"]?.array?.first?.string == query["redirect_uri"])
        #expect(document["grant_types"] == ["authorization_code", "refresh_token"])
        // A later sign-in may need the other scopes.
        #expect(document["scope"] == "mcp:read offline_access mcp:write")
    }

    @Test func `registers another client at another issuer, and shows neither to the other`() async throws {
        let house = try await MCPHouse.signedIn()
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://other.example"],
            ]
        }
        // The session goes on where it was made.
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.provider.presented.count == 1 && house.other.requests.isEmpty)
        #expect(try await house.signIn(at: house.other)["client_id"] == "client-2")
        #expect(house.other.requests.allSatisfy { $0.form["client_id"] ?? "client-2" == "client-2" })
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.other.presented.count == 1 && house.provider.presented.count == 1)
        // Back at the first one its client is still known.
        house.network.announce { $0 = MCPNetwork.Announced() }
        #expect(try await house.signIn()["client_id"] == "client-1")
        #expect(house.network.requests(to: "/register").count == 2)
    }

    @Test func `sends a registered secret to its issuer alone`() async throws {
        let house = try await MCPHouse()
        house.network.give(secret: "hush-hush-hush")
        try await house.signIn()
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        let forms = house.provider.requests.filter { $0.endpoint == .token }.map(\.form)
        #expect(forms.count == 2 && forms.allSatisfy { $0["client_secret"] == "hush-hush-hush" })
    }

    @Test(arguments: [
        (["client_secret_post", "client_secret_basic"], "client_secret_post"),
        (["private_key_jwt", "client_secret_basic", "client_secret_post"], "client_secret_basic"),
        (["client_secret_post", "none"], "none"),
    ]) func `registers with the way to send a secret that the issuer lists first, or without one`(
        listed: [String], way: String
    ) async throws {
        let house = try await MCPHouse()
        house.provider.behave {
            $0.metadata["token_endpoint_auth_methods_supported"] = .array(listed.map { .string($0) })
        }
        if way != "none" { house.network.give(secret: "hush-hush-hush") }
        _ = try await house.begin()
        let sent = try #require(house.network.requests(to: "/register").first?.body)
        #expect(try JSON(parsing: sent.revealedBytes())["token_endpoint_auth_method"]?.string == way)
    }

    @Test func `uses a client-id metadata document, at the shared path`() async throws {
        let house = try await MCPHouse { _, kind in kind.clientMetadataURL = "https://apps.example/client.json" }
        house.provider.behave { $0.metadata["client_id_metadata_document_supported"] = true }
        let query = try await house.begin().query
        #expect(query["client_id"] == "https://apps.example/client.json")
        #expect(query["redirect_uri"]?.hasSuffix("/callback") == true)
        #expect(house.network.requests(to: "/register").isEmpty)
    }

    @Test func `uses no document where responses do not name their issuer`() async throws {
        let house = try await MCPHouse { _, kind in kind.clientMetadataURL = "https://apps.example/client.json" }
        house.provider.behave { manners in
            manners.metadata["client_id_metadata_document_supported"] = true
            manners.metadata["authorization_response_iss_parameter_supported"] = false
        }
        #expect(try await house.begin().query["client_id"] == "client-1")
    }

    @Test func `uses the client of the configuration at its issuer, and at no other`() async throws {
        let house = try await MCPHouse { account, kind in
            account.clientID = "mine"
            kind.issuer = "https://id.example"
        }
        #expect(try await house.signIn()["client_id"] == "mine")
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://other.example"],
            ]
        }
        let refused = await house.failure()
        guard case .misconfigured(let reason)? = refused else { throw Unexpected() }
        #expect(
            reason.oauth
                == .mcpOtherIssuer(
                    House.name, configured: "https://id.example", announced: "https://other.example"))
        #expect(house.other.requests.isEmpty)
    }

    @Test(arguments: [
        (false, false, OAuthReason.MCPDocument.notTaken), (false, true, .notTaken), (true, false, .missing),
        (true, true, .shared),
    ]) func `asks for a client where none can be had, and says why it has no document`(
        takesDocuments: Bool, hasDocument: Bool, document: OAuthReason.MCPDocument
    ) async throws {
        let house = try await MCPHouse { _, kind in
            if hasDocument { kind.clientMetadataURL = "https://apps.example/client.json" }
        }
        house.provider.behave { manners in
            manners.metadata["registration_endpoint"] = .some(nil)
            manners.metadata["client_id_metadata_document_supported"] = .bool(takesDocuments)
            manners.metadata["authorization_response_iss_parameter_supported"] = false
        }
        let expected = OAuthReason.mcpNeedsClient(House.name, issuer: "https://id.example", document)
        guard case .misconfigured(let reason)? = await house.failure() else { throw Unexpected() }
        #expect(reason.oauth == expected)
        #expect(
            try await Diagnostics(of: house.broker).findings(of: House.name).contains {
                $0.message.oauth == expected && $0.level == .wrong
            })
    }

    @Test(arguments: [
        #"{"error":"invalid_target"}"#,
        #"{"error":"invalid_request","error_description":"AADSTS901002: The 'resource' request parameter is not supported."}"#,
        #"{"error":"invalid_request","error_description":"AADSTS9010010: The resource parameter does not match the scopes."}"#,
        #"{"error":"invalid_request","error_description":"Unknown parameter: resource"}"#,
    ]) func `names the setting where the issuer refuses the parameter resource`(body: String) async throws {
        let house = try await MCPHouse()
        let (url, _) = try await house.begin()
        house.network.forget(["client-1"], saying: (400, body))
        guard case .failed(_, .misconfigured(let reason)) = await house.broker.receive(try house.provider.consent(url)),
            case .mcpResourceRefused(House.name, "id.example", _)? = reason.oauth
        else { throw Unexpected() }
        // Nothing is wrong with the client.
        house.network.forget([])
        #expect(try await house.signIn()["client_id"] == "client-1")
        let held = await house.vault.sessions
        house.network.forget(["client-1"], saying: (400, body))
        house.clock.advance(by: 3_600)
        let failure = await thrown(by: try await house.token())
        guard case .misconfigured(let reason)? = failure, case .mcpResourceRefused? = reason.oauth
        else { throw Unexpected(failure) }
        #expect(await house.vault.sessions == held)
    }

    @Test(arguments: [
        #"{"error":"invalid_request","error_description":"redirect_uri is missing"}"#,
        #"{"error":"invalid_scope","error_description":"no such scope at this resource server"}"#,
    ]) func `names no setting for another refusal`(body: String) async throws {
        let house = try await MCPHouse()
        let (url, _) = try await house.begin()
        house.network.forget(["client-1"], saying: (400, body))
        guard case .failed(_, .provider(.refused)) = await house.broker.receive(try house.provider.consent(url))
        else { throw Unexpected() }
    }

    @Test func `sends no resource any more once the setting says so`() async throws {
        let house = try await MCPHouse()
        #expect(try await house.signIn()["resource"] == "https://mcp.example/mcp")
        try await house.configure { $1.sendsResource = false }
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        let refresh = try #require(house.provider.requests.last { $0.form["refresh_token"] != nil })
        #expect(refresh.form["resource"] == nil)
    }

    @Test(arguments: [
        (200, "application/json", "{}", true), (200, "text/event-stream", "", true), (200, "text/html", "<p>", false),
        (400, "application/json", #"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}"#, true),
        (400, "application/json", #"{"error":"no"}"#, false), (404, "application/json", "{}", false),
    ]) func `needs none at a server that responds without a token and announces nothing`(
        status: Int, type: String, body: String, isOpen: Bool
    ) async throws {
        let house = try await MCPHouse()
        house.network.announce { announced in
            announced.documents = [:]
            announced.challenge = nil
            announced.response = (status, type, body)
        }
        let failure = await house.failure()
        let reason: OAuthReason? = if case .misconfigured(let reason)? = failure { reason.oauth } else { nil }
        let expected = OAuthReason.mcpNeedsNoSignIn(House.name, host: "mcp.example")
        #expect((reason == expected) == isOpen, "\(String(describing: failure))")
    }

    @Test func `sends no resource to a server that refuses it`() async throws {
        let house = try await MCPHouse { _, kind in kind.sendsResource = false }
        #expect(try await house.signIn()["resource"] == nil)
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.provider.requests.allSatisfy { $0.form["resource"] == nil })
    }

    @Test(
        arguments: [
            (#"Bearer scope="a b""#, "a b offline_access"), ("Bearer", "mcp:read mcp:write offline_access"),
            (nil, "mcp:read mcp:write offline_access"),
        ] as [(String?, String)])
    func `takes the scopes of the challenge, else those of the metadata`(challenge: String?, scope: String) async throws
    {
        let house = try await MCPHouse()
        house.network.announce { $0.challenge = challenge }
        #expect(try await house.begin().query["scope"] == scope)
    }

    @Test func `states no scope where none is named`() async throws {
        let house = try await MCPHouse()
        house.provider.behave { $0.metadata["scopes_supported"] = .some(nil) }
        house.network.announce { announced in
            announced.challenge = nil
            announced.documents = [
                "/.well-known/oauth-protected-resource": [
                    "resource": "https://mcp.example", "authorization_servers": ["https://id.example"],
                ]
            ]
        }
        let query = try await house.begin().query
        #expect(query["scope"] == nil && query["resource"] == "https://mcp.example")
    }

    @Test func `takes the configured scopes before all others`() async throws {
        let house = try await MCPHouse { account, _ in account.scopes = ["mine"] }
        #expect(try await house.begin().query["scope"] == "mine")
    }

    @Test func `has the same parameters on a second page, with a state of its own`() async throws {
        let house = try await MCPHouse()
        let first = try await house.begin(SignInRequest(scopes: ["mcp:write"])).query
        let flow = try await house.broker.signIn(House.name, SignInRequest(scopes: ["mcp:write"])).flow
        let context = house.broker.signInContext
        let account = try await context.sessions.account(House.name)
        let pending = try await house.broker.flowRegistry.pendingFlow(flow.id, awaiting: .callback)
        let page = try #require(try await account.provider(with: context.tools).anotherPage(of: pending, in: context))
        let second = try MCPHouse.query(of: page.authorizationURL)
        #expect(first["state"] != second["state"])
        for name in ["client_id", "scope", "resource", "redirect_uri"] {
            #expect(first[name] == second[name], "\(name)")
        }
        #expect(first["scope"] == "mcp:write")
    }

    @Test func `registers another client when the port of the first one is taken`() async throws {
        let house = try await MCPHouse()
        #expect(try await house.signIn()["redirect_uri"] == "http://127.0.0.1:4711/callback/work")
        house.ports.take(4_711)
        let second = try await house.signIn()
        #expect(second["redirect_uri"] == "http://127.0.0.1:4712/callback/work" && second["client_id"] == "client-2")
        #expect(try await house.signIn()["client_id"] == "client-2")
    }

    @Test func `registers another client when the issuer does not know the first one any more`() async throws {
        let house = try await MCPHouse()
        let (url, _) = try await house.begin()
        house.provider.script(.token, .status(401, #"{"error":"invalid_client"}"#))
        guard case .failed = await house.broker.receive(try house.provider.consent(url)) else { throw Unexpected() }
        #expect(try await house.signIn()["client_id"] == "client-2")
    }
}
