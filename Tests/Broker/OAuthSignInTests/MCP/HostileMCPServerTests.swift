import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A hostile MCP server` {
    private func refused(_ house: MCPHouse) async throws -> [String] {
        #expect(await house.failure() != nil)
        #expect(!house.network.urls.contains { $0.contains("/register") || $0.contains("/authorize") })
        return Array(house.network.urls.dropFirst())
    }

    @Test func `cannot send a sign-in inside by its challenge`() async throws {
        let house = try await MCPHouse()
        house.network.announce { $0.challenge = #"Bearer resource_metadata="http://127.0.0.1:9/x""# }
        #expect(try await refused(house) == [])
    }

    @Test func `cannot speak for another server`() async throws {
        let house = try await MCPHouse()
        house.network.announce { announced in
            announced.documents["/.well-known/oauth-protected-resource/mcp"] = [
                "resource": "https://evil.example/mcp", "authorization_servers": ["https://id.example"],
            ]
        }
        #expect(try await refused(house).count == 1)
    }

    @Test(arguments: [nil, ["plain"]] as [JSON?])
    func `whose issuer does not announce S256 is refused`(methods: JSON?) async throws {
        let house = try await MCPHouse()
        house.provider.behave { $0.metadata["code_challenge_methods_supported"] = .some(methods) }
        _ = try await refused(house)
    }

    @Test(arguments: ["https://other.example", "https://id.example/", "https://ID.example"])
    func `whose issuer's metadata name another issuer is refused`(stated: String) async throws {
        let house = try await MCPHouse()
        house.provider.behave { $0.metadata["issuer"] = .string(stated) }
        _ = try await refused(house)
        #expect(house.provider.requests.allSatisfy { $0.endpoint == .metadata } && !house.provider.requests.isEmpty)
    }

    @Test func `whose names resolve differently the second time leads to their first addresses`() async throws {
        let house = try await MCPHouse()
        _ = try await house.begin()
        for (host, requests) in Dictionary(grouping: house.network.requests, by: { $0.url.split(separator: "/")[1] }) {
            #expect(requests.count >= 2, "\(host)")
            #expect(requests[0].address == nil, "\(host)")
            let later = Set(requests.dropFirst().map(\.address))
            #expect(later.count == 1 && later != [nil], "\(host): \(later)")
        }
        #expect(house.network.urls.contains("POST https://id.example/register"))
        // The next walk resolves them again: an address may change.
        let before = house.network.requests.count
        _ = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(house.network.requests[before].address == nil)
    }

    @Test(arguments: [
        (PeerPlace.elsewhere, true, true), (.unknown, true, true), (.privateNetwork, true, false),
        (.inside, false, false),
    ]) func `leads only into networks where it is itself`(
        peer: PeerPlace, refusesInside: Bool, refusesPrivate: Bool
    ) async throws {
        let house = try await MCPHouse()
        house.network.announce { $0.peer = peer }
        try await house.signIn()
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        let away = house.network.requests.filter { $0.url.hasPrefix("https://id.example/") }
        #expect(away.count >= 4)
        for request in away {
            #expect(request.refusesInsideAddresses == refusesInside, "\(request.url)")
            #expect(request.refusesPrivateAddresses == refusesPrivate, "\(request.url)")
        }
        // Its own host was named by the user, so the first request goes wherever it is. From then on it is not on this
        // machine if it was not.
        let home = house.network.requests.filter { $0.url.hasPrefix("https://mcp.example/") }
        #expect(home.count >= 2 && home.allSatisfy { !$0.refusesPrivateAddresses })
        #expect(home.first?.refusesInsideAddresses == false)
        let isElsewhere = peer == .elsewhere || peer == .privateNetwork
        #expect(home.dropFirst().allSatisfy { $0.refusesInsideAddresses == isElsewhere })
    }
}
