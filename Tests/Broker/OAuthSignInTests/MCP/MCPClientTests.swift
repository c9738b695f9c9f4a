import OAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A client of an MCP server that was replaced` {
    private func deletions(_ house: MCPHouse) -> [String] { house.network.urls.filter { $0.hasPrefix("DELETE") } }

    @Test func `is deleted at its issuer and in the vault when no session uses it any more`() async throws {
        let house = try await MCPHouse()
        house.network.manageClients()
        house.network.give(secret: "hush-hush-hush")
        try await house.signIn()
        house.ports.take(4_711)
        try await house.signIn()
        #expect(await eventually { await house.broker.pendingRevocations().isEmpty })
        // The session of the first client ended with the second sign-in; the third one finds the client unused.
        #expect(deletions(house).isEmpty)
        #expect(try await house.signIn()["client_id"] == "client-2")
        #expect(await eventually { deletions(house) == ["DELETE https://id.example/register/client-1"] })
        await house.work.drain(atMost: .seconds(30))
        let slot = RegistrationRecord.slot(House.name, issuer: "https://id.example", clientID: "client-1")
        #expect(try await house.vault.load(slot) == nil)
        house.clock.advance(by: 3_600)
        _ = try await house.token()
    }

    @Test func `stays while the session uses it`() async throws {
        let house = try await MCPHouse()
        house.network.manageClients()
        try await house.signIn()
        house.ports.take(4_711)
        // The user leaves the page of the second client.
        #expect(try await house.begin().query["client_id"] == "client-2")
        #expect(try await house.begin().query["client_id"] == "client-2")
        await house.work.drain(atMost: .seconds(30))
        #expect(deletions(house).isEmpty)
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.provider.presented.count == 1)
    }

    @Test func `is deleted with the others when the account is removed`() async throws {
        let house = try await MCPHouse()
        house.network.manageClients()
        try await house.signIn()
        house.ports.take(4_711)
        _ = try await house.begin()
        // What deletes replaced clients has had its turn.
        await house.work.drain(atMost: .seconds(30))
        let deleted = try await Registrations(of: house.broker).deleteOwn(House.name)
        #expect(deleted.clientID == "client-2" && deleted.isTold)
        let expected = ["client-1", "client-2"].map { "DELETE https://id.example/register/\($0)" }
        #expect(deletions(house) == expected)
        guard
            case .nothingHeld = await thrown(by: try await Registrations(of: house.broker).deleteOwn(House.name))
        else { throw Unexpected() }
    }

    @Test func `is kept in the record through writing and reading`() throws {
        var record = MCPClientRecord()
        for id in ["first", "second"] {
            record.add(
                MCPClientRecord.Client(
                    issuer: "https://id.example", clientID: id, authentication: .none, hasSecret: false,
                    redirectURI: "http://127.0.0.1:4711/callback/work", template: nil, scopes: []))
        }
        let read = try #require(MCPClientRecord(decoding: record.encoded()))
        #expect(read == record && read.clients.map(\.isReplaced) == [true, false])
        #expect(read.client(at: "https://id.example")?.clientID == "second")
        record.replace("https://id.example")
        #expect(record.client(at: "https://id.example") == nil && record.clients.count == 2)
    }
}

/// How a token endpoint says that it does not know the client: status and body.
private let refusals = [
    (401, #"{"error":"invalid_client"}"#), (401, ""), (400, #"{"error":"invalid_client"}"#),
    (400, #"{"error":"unauthorized_client","error_description":"Invalid client_id"}"#),
    (400, #"{"error":"invalid_request","error_description":"Client not found"}"#),
    (404, #"{"detail":"client not found"}"#),
]

@Suite(.timeLimit(.minutes(1))) struct `A client that an MCP server's issuer has forgotten` {
    @Test(arguments: refusals)
    func `is replaced by the next sign-in after a refresh was refused, and the session is kept`(
        status: Int, body: String
    ) async throws {
        let house = try await MCPHouse.signedIn()
        let held = await house.vault.sessions
        house.network.forget(["client-1"], saying: (status, body))
        house.clock.advance(by: 3_600)
        let failure = await thrown(by: try await house.token())
        guard case .refreshRefused(House.name, "id.example", .client)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(await house.vault.sessions == held)
        #expect(try await house.signIn()["client_id"] == "client-2")
        house.clock.advance(by: 3_600)
        _ = try await house.token()
    }

    @Test(arguments: refusals)
    func `is replaced by the next sign-in after the code exchange was refused`(
        status: Int, body: String
    ) async throws {
        let house = try await MCPHouse()
        let (url, _) = try await house.begin()
        house.network.forget(["client-1"], saying: (status, body))
        let verdict = await house.broker.receive(try house.provider.consent(url))
        guard case .failed(_, .clientForgotten(House.name, "id.example", _, _, nil)) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(try await house.signIn()["client_id"] == "client-2")
    }

    @Test func `still refreshes its session while the issuer honours it and a new client is registered`() async throws {
        let house = try await MCPHouse()
        // The timer of this flow sleeps beyond the flow's end, if it began to sleep before that.
        let first = try await house.begin().url
        #expect(await house.clock.flowTimersSleep())
        _ = await house.broker.receive(try house.provider.consent(first))
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(await house.clock.flowTimersSleep(2))
        house.clock.advance(by: 601)
        guard case .expired = try await house.broker.flow(flow.id, waiting: .seconds(30)).status else {
            throw Unexpected()
        }
        #expect(try await house.begin().query["client_id"] == "client-2")
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.provider.requests.last { $0.form["refresh_token"] != nil }?.form["client_id"] == "client-1")
    }

    @Test func `is replaced after the port of its expired sign-in was closed`() async throws {
        let house = try await MCPHouse()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(await house.clock.flowTimersSleep())
        // The registration has opened and closed the port before, to name it.
        let closed = house.ports.closed
        await house.vault.hold()
        house.clock.advance(by: 601)
        #expect(await eventually { house.ports.closed == closed + [flow.redirectURI] })
        await house.vault.release()
        guard case .expired = try await house.broker.flow(flow.id, waiting: .seconds(30)).status else {
            throw Unexpected()
        }
        #expect(try await house.begin().query["client_id"] == "client-2")
    }

    @Test(arguments: [true, false])
    func `is replaced after the page was left, if the issuer's pages show an error for it`(
        isForgotten: Bool
    ) async throws {
        let house = try await MCPHouse()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        if isForgotten { house.network.forget(["client-1"]) }
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        #expect(try await house.begin().query["client_id"] == (isForgotten ? "client-2" : "client-1"))
    }

    @Test func `is found by the diagnosis, and replaced by the next sign-in`() async throws {
        let house = try await MCPHouse.signedIn()
        let finding = OAuthReason.mcpClientForgotten(House.name, host: "id.example")
        func found() async throws -> Bool {
            try await Diagnostics(of: house.broker).findings(of: House.name).contains {
                $0.message.oauth == finding && $0.level == .wrong && $0.setting == nil
            }
        }
        #expect(try await !found())
        house.network.forget(["client-1"])
        #expect(try await found())
        #expect(try await house.begin().query["client_id"] == "client-2")
    }

    @Test func `whose secret has expired is replaced by the next sign-in, which the refresh says`() async throws {
        let house = try await MCPHouse()
        house.network.give(secret: "hush-hush-hush", expiringAt: house.clock.now + 1_800)
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.network.give(secret: "hush-hush-hush")
        let failure = await thrown(by: try await house.token())
        #expect(failure == .refreshRefused(House.name, host: "id.example", .clientSecretExpired))
        #expect(try await house.signIn()["client_id"] == "client-2")
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The session of an MCP account that is not configured any more` {
    @Test func `is revoked at its issuer by its own client`() async throws {
        let house = try await MCPHouse()
        house.network.give(secret: "hush-hush-hush")
        try await house.signIn()
        await house.broker.configure([])
        let sealed = SealedSessions(of: house.broker)
        #expect(await sealed.list(atMost: .seconds(30))?.map(\.isRevocable) == [true])
        let removed = try await sealed.remove(of: House.name, revokes: true)
        #expect(removed.map(\.revocation) == [.revoked], "\(removed.map(\.error))")
        let revocations = house.provider.requests.filter { $0.endpoint == .revocation }
        #expect(!revocations.isEmpty && revocations.allSatisfy { $0.form["client_secret"] == "hush-hush-hush" })
    }
}

@Suite(.timeLimit(.minutes(1))) struct `An MCP server of revision 2025-03-26` {
    /// The server's own origin issues the tokens: it has no protected-resource metadata.
    private func house(hasMetadata: Bool) async throws -> MCPHouse {
        let house = try await MCPHouse(issuedBy: "https://mcp.example")
        house.network.announce { announced in
            announced.challenge = "Bearer"
            announced.documents = [:]
        }
        if !hasMetadata { house.network.hideMetadata() }
        return house
    }

    @Test(arguments: [true, false]) func `is its own authorization server`(hasMetadata: Bool) async throws {
        let house = try await house(hasMetadata: hasMetadata)
        let (url, query) = try await house.begin()
        #expect(url.hasPrefix("https://mcp.example/authorize?") && query["code_challenge_method"] == "S256")
        guard case .completed = await house.broker.receive(try house.provider.consent(url)) else { throw Unexpected() }
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(house.network.requests(to: "/register").count == 1)
        #expect(house.provider.requests.filter { $0.endpoint == .token }.count == 2)
    }

    @Test func `is refused where a newer server has no metadata of its issuer`() async throws {
        let house = try await MCPHouse()
        house.network.hideMetadata()
        #expect(await house.failure() != nil)
        #expect(house.network.requests(to: "/register").isEmpty)
    }
}
