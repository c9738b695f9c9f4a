import Cryptography
import LocalHTTP
import OAuth
import OAuthSignIn
import Records
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Proofs for requests` {
    private static let proof = "/v1/accounts/work/proof"
    /// Of the account, and beside the issuer.
    private static let origins = ["https://api.example.org/v1/*", "https://id.example/*"]

    /// A house whose account has a token that is bound to a key.
    private func house(isBound: Bool = true) async throws -> APIHouse {
        let house = try await APIHouse()
        if isBound { house.provider.bindsTokens() }
        var account = try APIHouse.account("work")
        account.oauth.dpop = isBound ? .required : .off
        try await house.configure([account])
        try await house.signIn()
        house.origins.configure(try Self.origins.map(origin))
        return house
    }

    private func origin(_ url: String) throws -> Origin {
        Origin(OriginRule(try OriginPattern(parsing: url)), account: try #require(AccountName("work")))
    }

    private func ask(
        _ house: APIHouse, _ url: String = "https://api.example.org/v1/things?page=2", method: String = "GET",
        with more: JSONObject = [:]
    ) async -> APIHouse.Answer {
        let body = JSONObject([.init("method", .string(method)), .init("url", .string(url))] + more.members)
        return await house.ask("POST", Self.proof, JSON.object(body).text)
    }

    private func claims(_ proof: JSON?) throws -> JSON {
        let parts = try #require(proof?.string).split(separator: ".")
        try #require(parts.count == 3)
        return try JSON(parsing: try #require(Base64URL.decode(parts[1])))
    }

    @Test func `have the token of the same moment in them`() async throws {
        let house = try await house()
        let answer = await ask(house, method: "POST", with: ["nonce": "n-1"])
        #expect(answer.status == 200, "\(answer.text)")
        #expect(answer["authorization"] == "DPoP access-1" && answer["access_token"] == "access-1")
        #expect(answer["token_type"] == "DPoP" && answer["expires_in"] == 3_600)
        let claims = try claims(answer["dpop"])
        #expect(claims["htm"] == "POST" && claims["htu"] == "https://api.example.org/v1/things")
        #expect(claims["nonce"] == "n-1" && claims["iat"] == 1_800_000_000)
        #expect(claims["ath"]?.string == Base64URL.encode(Digest.sha256("access-1")))
        #expect(try self.claims(await ask(house)["dpop"])["jti"] != self.claims(await ask(house)["dpop"])["jti"])
        #expect(await house.ask("GET", "/v1/accounts/work/session")["token_type"] == "DPoP")
    }

    @Test func `are not needed with a Bearer token, which is answered with the same call`() async throws {
        let answer = await ask(try await house(isBound: false))
        #expect(answer.status == 200 && answer["authorization"] == "Bearer access-1")
        #expect(answer["dpop"] == nil && answer["token_type"] == "Bearer")
    }

    @Test func `come after a refresh if the server has refused the token`() async throws {
        let house = try await house()
        let refused = Digest.hex(Digest.sha256("access-1"))
        #expect(await ask(house, with: ["rejected_sha256": refused])["authorization"] == "DPoP access-2")
        // The daemon has another one already.
        #expect(await ask(house, with: ["rejected_sha256": refused])["authorization"] == "DPoP access-2")
        #expect(house.provider.tokenRequests == 2)
    }

    @Test(arguments: [
        "https://api.example.org/v2/things", "https://api.example.org/", "https://example.org/v1",
        "https://api.example.org:444/v1/things", "https://api.example.org.evil.example/v1/things",
        "https://other.example.org/v1", "https://api.example.org/v1/../v2/x", "https://api.example.org/v1/%2e%2e/v2",
        "https://api.example.org/%76%32",
    ])
    func `are for the account's origins alone`(url: String) async throws {
        let answer = await ask(try await house(), url)
        #expect(answer.code == "policy_denied", "\(answer.text)")
    }

    @Test(arguments: [
        "/token", "/token/", "//token", "/%74oken", "/TOKEN", "/token;x=y", "/token%3Bx", "/token?a=b", "/revoke",
        "/authorize",
        "/api/introspect", "/./token", "/x/../token", "/x/%2E%2E/token", "/%2Ftoken", ":443/token",
        "/token.json", "/token/x",
    ])
    func `are for no endpoint of the issuer, in whatever spelling`(path: String) async throws {
        let answer = await ask(try await house(), "https://id.example\(path)", method: "POST")
        #expect(answer.code == "policy_denied" && answer["dpop"] == nil, "\(answer.text)")
    }

    @Test func `are for the issuer's userinfo, and for what is beside its endpoints`() async throws {
        let house = try await house()
        for path in ["/api/me", "/api", "/tokens", "/api/token"] {
            #expect(await ask(house, "https://id.example\(path)").status == 200, "\(path)")
        }
    }

    @Test(
        arguments: [
            ("G T", "https://api.example.org/v1", nil, "method"), ("", "https://api.example.org/v1", nil, "method"),
            ("GET", "api.example.org/v1", nil, "url"), ("GET", "https://a@api.example.org/v1", nil, "url"),
            ("GET", "http://api.example.org/v1", nil, "url"), ("GET", "https://api.example.org/v1", "a b", "nonce"),
            ("GET", "https://api.example.org/v1", "\"", "nonce"), ("GET", "https://api.example.org/v1", "", "nonce"),
        ] as [(String, String, String?, String)])
    func `are refused for what no request has`(
        method: String, url: String, nonce: String?, field: String
    ) async throws {
        let answer = await ask(try await house(), url, method: method, with: ["nonce": nonce])
        #expect(answer.code == "validation_failed", "\(answer.text)")
        #expect(answer["detail"]?.string?.hasPrefix("\(field):") == true, "\(answer.text)")
    }

    @Test func `are in the audit log, and need consent`() async throws {
        let house = try await house()
        _ = await ask(house)
        await house.records.audit.flush()
        // With the origin as the table has it, and no path or query of the request.
        #expect(house.folder.text.contains(#""operation":"proof""#))
        #expect(house.folder.text.contains(#""origin":"https://api.example.org/v1/*""#), "\(house.folder.text)")
        #expect(!house.folder.text.contains("things") && !house.folder.text.contains("page"))
        house.consents.configure([try #require(AccountName("work")): ConsentDesk.Rule(.deny)])
        #expect(await ask(house).code == "policy_denied")
    }

    @Test func `of an account at an MCP server are for that server`() async throws {
        let house = try await APIHouse()
        let server = try MCPServer(parsing: "https://mcp.example.org/mcp")
        let rules = OAuthAccount(endpoints: .issuer("https://mcp.example.org"))
        try await house.configure([
            Account(
                name: try #require(AccountName("work")), provider: "mcp", source: "test",
                kind: MCPAccount(server: server, rules: rules), clientID: "")
        ])
        #expect(await ask(house, "https://mcp.example.org/mcp").code == "sign_in_required")
        #expect(await ask(house, "https://api.example.org/v1/x").code == "policy_denied")
    }

    @Test func `come with a lookup that names the method, and without it no bound token is given`() async throws {
        let house = try await house()
        func look(_ more: String) async -> APIHouse.Answer {
            await house.ask("POST", "/v1/lookup", #"{"url":"https://api.example.org/v1/x"\#(more)}"#)
        }
        let refused = await look("")
        #expect(refused.code == "state_conflict" && refused["cause"] == "token_bound", "\(refused.text)")
        #expect(refused["account"] == "work" && !refused.text.contains("access-1"))
        let given = await look(#","method":"PUT","nonce":"n-2""#)
        let headers = given["headers"]?.array?.compactMap(\.string) ?? []
        try #require(headers.count == 2, "\(given.text)")
        #expect(headers[0] == "Authorization: DPoP access-1" && headers[1].hasPrefix("DPoP: "))
        let claims = try claims(.string(String(headers[1].dropFirst(6))))
        #expect(claims["htm"] == "PUT" && claims["nonce"] == "n-2")
        // An endpoint of the issuer is none for a tool either.
        let endpoint = await house.ask("POST", "/v1/lookup", #"{"url":"https://id.example/token","method":"POST"}"#)
        #expect(endpoint.code == "policy_denied", "\(endpoint.text)")
    }

    @Test(arguments: [true, false]) func `are given on an exposed socket that was made for them`(isMade: Bool)
        async throws
    {
        let house = try await house()
        var order = ExposedSocket.Order(name: "ci", accounts: [try #require(AccountName("work"))])
        order.givesProofs = isMade
        let api = ExposedAPI(house.api, showing: try await house.exposedSockets.add(order))
        func ask(_ path: String, _ body: String) async -> JSON {
            let response = await api.respond(
                ServerRequest(
                    method: "POST", target: path, fields: HTTPFields([("Content-Type", "application/json")]),
                    body: Array(body.utf8), peer: .local(uid: 1_000, pid: 4_712)))
            guard case .bytes(let bytes) = response.body else { return .null }
            return (try? JSON(parsing: bytes)) ?? .null
        }
        let request = #""method":"GET","url":"https://api.example.org/v1/x""#
        let answer = await ask(Self.proof, "{\(request)}")
        let lookup = await ask("/v1/lookup", "{\(request)}")
        guard isMade else {
            #expect(answer["code"] == "policy_denied" && answer["detail"]?.string?.contains("“proof”") == true)
            #expect(lookup["cause"] == "token_bound")
            return
        }
        #expect(answer["authorization"] == "DPoP access-1" && answer["dpop"] != nil, "\(answer.text)")
        #expect(lookup["headers"]?.array?.count == 2, "\(lookup.text)")
        let refresh = #"{\#(request),"rejected_sha256":"\#(String(repeating: "0", count: 64))"}"#
        #expect(await ask(Self.proof, refresh)["code"] == "policy_denied")
        #expect(
            await ask(Self.proof, #"{"method":"POST","url":"https://id.example/token"}"#)["code"] == "policy_denied")
    }
}
