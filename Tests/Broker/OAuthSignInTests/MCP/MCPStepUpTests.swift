import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

/// A tool needs more scopes than the session has (RFC 6750 section 3.1, `insufficient_scope`).
@Suite(.timeLimit(.minutes(1))) struct `A step-up at an MCP server` {
    private func stepUp(_ house: MCPHouse) async throws -> (url: String, query: [String: String]) {
        try await house.begin(SignInRequest(scopes: ["mcp:write"]))
    }

    @Test func `requests the scopes of the session and the new ones, while the session goes on`() async throws {
        let house = try await MCPHouse.signedIn()
        let token = try await house.token()
        let (url, query) = try await stepUp(house)
        #expect(query["scope"] == "mcp:read offline_access mcp:write" && query["client_id"] == "client-1")
        #expect(try await house.token() == token)
        _ = try await house.broker.refresh(House.name, isForced: true)
        let refreshed = try await house.token()
        #expect(refreshed != token)
        guard case .completed = await house.broker.receive(try house.provider.consent(url)) else { throw Unexpected() }
        #expect(try await house.token() != refreshed)
        // The client was registered for all scopes of the server at once.
        #expect(house.network.requests(to: "/register").count == 1)
        #expect(try await house.begin().query["scope"] == "mcp:read offline_access mcp:write")
    }

    @Test func `leaves the session as it was if the user declines`() async throws {
        let house = try await MCPHouse.signedIn()
        let token = try await house.token()
        let (_, query) = try await stepUp(house)
        let denial =
            "\(query["redirect_uri"] ?? "")?error=access_denied&state=\(query["state"] ?? "")&iss=https://id.example"
        guard case .failed = await house.broker.receive(denial) else { throw Unexpected() }
        #expect(try await house.token() == token)
        house.clock.advance(by: 3_600)
        #expect(try await house.token() != token)
    }

    @Test func `registers another client where the first one cannot have the scope`() async throws {
        let house = try await MCPHouse.signedIn()
        let query = try await house.begin(SignInRequest(scopes: ["mcp:admin"])).query
        #expect(query["scope"] == "mcp:read offline_access mcp:admin" && query["client_id"] == "client-2")
    }

    @Test func `takes no scopes of another issuer along`() async throws {
        let house = try await MCPHouse.signedIn()
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://other.example"],
            ]
        }
        #expect(try await stepUp(house).query["scope"] == "mcp:write")
    }
}
