import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `The diagnosis of an MCP server` {
    private func findings(_ house: MCPHouse) async throws -> [OAuthReason] {
        try await Diagnostics(of: house.broker).findings(of: House.name).compactMap { finding in
            if case .host(_, let reason) = finding.message { return reason.oauth }
            return finding.message.oauth
        }
    }

    @Test func `says what it announces, and changes nothing`() async throws {
        let house = try await MCPHouse()
        #expect(
            try await findings(house) == [
                .mcpResponds(status: 401),
                .mcpAnnounces(
                    host: "mcp.example", issuer: "https://id.example", client: .registration,
                    scopes: ["mcp:read", "offline_access"]),
            ])
        #expect(house.network.requests(to: "/register").isEmpty)
        #expect(await house.vault.log.isEmpty)
    }

    @Test(arguments: ["", "configured"])
    func `says that the issuer has changed, also without a registration`(clientID: String) async throws {
        let house = try await MCPHouse { account, _ in account.clientID = clientID }
        try await house.signIn()
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://other.example"],
            ]
        }
        #expect(
            try await findings(house).contains(
                .mcpIssuerChanged(House.name, former: "https://id.example", issuer: "https://other.example")))
    }

    @Test func `says which scopes are new since the sign-in, unless the user chose them`() async throws {
        let house = try await MCPHouse.signedIn()
        let more = OAuthReason.mcpNamesMoreScopes(House.name, scopes: ["mcp:admin"])
        #expect(try await findings(house).count == 4)
        house.network.announce { $0.challenge = #"Bearer scope="mcp:read mcp:admin""# }
        #expect(try await findings(house).contains(more))
        let chosen = try await MCPHouse { account, _ in account.scopes = ["mcp:read"] }
        try await chosen.signIn()
        chosen.network.announce { $0.challenge = #"Bearer scope="mcp:read mcp:admin""# }
        #expect(try await !findings(chosen).contains(more))
    }

    @Test func `says whether the server accepts the token, and sends it nowhere else`() async throws {
        let house = try await MCPHouse.signedIn()
        #expect(try await findings(house).contains(.mcpAcceptsToken(host: "mcp.example")))
        house.network.announce { $0.tokenStatus = 401 }
        #expect(try await findings(house).contains(.mcpRefusesToken(House.name, host: "mcp.example")))
        house.network.announce { announced in
            announced.tokenStatus = 403
            announced.tokenChallenge = #"Bearer error="insufficient_scope", scope="a b""#
        }
        let found = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(
            found.contains {
                $0.message.oauth == .mcpTokenLacksScopes(House.name, host: "mcp.example", scopes: ["a", "b"])
                    && $0.scope == "mcp:read offline_access a b"
            })
        let carrying = house.network.requests.filter { $0.authorization != nil }
        #expect(!carrying.isEmpty && carrying.allSatisfy { $0.url == MCPNetwork.server })
        // One that has expired is not sent.
        house.clock.advance(by: 3_600)
        _ = try await findings(house)
        #expect(house.network.requests.count { $0.authorization != nil } == carrying.count)
    }

    @Test func `says what is wrong with its documents`() async throws {
        let house = try await MCPHouse()
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = ["resource": "https://mcp.example/mcp"]
        }
        let found = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(found.contains { $0.check == .discovery && $0.level == .wrong && $0.setting == "mcp" })
    }
}
