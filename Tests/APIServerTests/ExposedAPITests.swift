import HTTPMessages
import LocalHTTP
import RingbackAPI
import StrictJSON
import Testing

@testable import APIServer
@testable import BrokerCore

/// A restricted socket in a house where alice is signed in to two accounts and shows one.
private struct Narrow {
    let house: House
    let api: ExposedAPI
    let exposure: Exposure

    init(_ ceiling: [String]? = nil, lifetime: Int? = nil, signsIn: Bool = true) async throws {
        house = try await House()
        let hidden = try House.account("hidden")
        try await house.configure([try House.account("work"), hidden])
        if signsIn { try await house.signIn() }
        exposure = try await house.exposures.add(
            Exposure.Order(
                name: "ci", accounts: [try #require(AccountName("work"))], ceiling: ceiling,
                allowedUIDs: [100_999], lifetime: lifetime))
        api = ExposedAPI(house.api, showing: exposure)
    }

    func ask(
        _ method: String, _ target: String, _ body: String? = nil, fields: [(String, String)] = [],
        uid: UInt32 = 1_000, memory: ConnectionMemory = ConnectionMemory()
    ) async -> House.Answer {
        var fields = HTTPFields(fields)
        if body != nil { fields.append("Content-Type", "application/json") }
        let response = await api.respond(
            ServerRequest(
                method: method, target: target, fields: fields, body: Array((body ?? "").utf8),
                peer: .local(uid: uid, pid: 4_712), memory: memory))
        var text = ""
        if case .bytes(let bytes) = response.body { text = String(decoding: bytes, as: UTF8.self) }
        for secret in house.provider.secrets where text.contains(secret) { Issue.record("\(target) shows \(secret)") }
        return House.Answer(response: response, text: text, json: (try? JSON(parsing: Array(text.utf8))) ?? .null)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A restricted socket` {
    private let session = "/v1/accounts/work/session"

    @Test func `serves the access token of what it shows, and nothing beside it`() async throws {
        let narrow = try await Narrow()
        let answer = await narrow.ask("GET", session)
        #expect(answer.status == 200)
        #expect(
            answer.json.object?.names == [
                "account", "subject", "access_token", "token_type", "scope", "issuer", "expires_at", "expires_in",
            ])
        #expect(answer["access_token"] == "access-1")
        #expect(answer.response.fields["Cache-Control"] == "no-store")
        #expect(
            await narrow.ask("GET", session + "?min_valid=10&timeout=5&subject=alice&kind=access_token").status == 200)
        #expect(await narrow.ask("GET", session + "?subject=bob").code == "state_conflict")
        #expect(await narrow.ask("GET", session + "?min_valid=x").code == "validation_failed")
    }

    @Test func `serves a reduced status and the accounts that it shows`() async throws {
        let narrow = try await Narrow(["openid", "email"], lifetime: 100)
        let status = await narrow.ask("GET", "/v1/status")
        #expect(status.status == 200)
        #expect(
            Set(status.json.object?.names ?? []) == ["version", "uptime", "vault", "accounts", "policy", "grant"])
        #expect(status["accounts"]?["authenticated"] == 1 && status["accounts"]?["unauthenticated"] == 0)
        #expect(
            status["grant"] == [
                "name": "ci", "accounts": ["work"], "scope": "email openid",
                "expires_at": .integer(narrow.house.clock.now + 100),
            ])
        let accounts = await narrow.ask("GET", "/v1/accounts")["accounts"]?.array ?? []
        #expect(accounts.map { $0["name"]?.string } == ["work"])
        let account = await narrow.ask("GET", "/v1/accounts/work")
        #expect(account.json == accounts.first)
        #expect(account["state"] == "authenticated" && account["user"]?["email"] == "alice@example.org")
        let told = account["user"]?.object?.names ?? []
        #expect(told.contains("email") && told.allSatisfy(["sub", "id", "email"].contains))
        #expect(account["source"] == "grant ci" && account["flow"] == nil)
    }

    @Test func `every other route is refused, whatever comes with it`() async throws {
        let narrow = try await Narrow()
        let served: Set<Route.ID> = [.getStatus, .listAccounts, .getAccount, .getSession, .getSessionByIssuer]
        for route in Route.all where !served.contains(route.id) {
            let path = route.path.replacing("{account}", with: "work").split(separator: "/").map {
                $0.hasPrefix("{") ? "x" : String($0)
            }.joined(separator: "/")
            for body in [nil, "{}", "no JSON"] as [String?] {
                let answer = await narrow.ask(route.method, "/" + path, body)
                #expect(answer.status == 403 && answer.code == "policy_denied", "\(route.method) \(path)")
            }
        }
        for path in ["/", "/v2", "/v1/accounts/", "/v1/accounts/work/other", "/v1/accounts/work/session/"] {
            #expect(await narrow.ask("GET", path).code == "policy_denied", "\(path)")
        }
        #expect(await narrow.ask("PUT", "/v1/status").code == "policy_denied")
    }

    @Test(arguments: [
        "sign_in=wait", "include=user", "include=id_token", "include=provider_token", "include=profile", "include=",
        "audience=x", "resource=https://x.example", "kind=id_token", "something=new", "sign_in=x",
    ])
    func `every other parameter is refused`(query: String) async throws {
        let narrow = try await Narrow()
        for target in [session, "/v1/session"] {
            let answer = await narrow.ask("GET", "\(target)?\(query)")
            #expect(answer.status == 403 && answer.code == "policy_denied", "\(target)?\(query)")
        }
        #expect(narrow.house.provider.tokenRequests == 1)
    }

    @Test func `what it does not show is refused, whether it is there or not`() async throws {
        let narrow = try await Narrow()
        let there = await narrow.ask("GET", "/v1/accounts/hidden")
        let nowhere = await narrow.ask("GET", "/v1/accounts/nowhere")
        #expect(there.status == 403 && there.code == "policy_denied" && there.text == nowhere.text)
        for name in ["hidden", "nowhere", "WORK", "work%20"] {
            #expect(await narrow.ask("GET", "/v1/accounts/\(name)/session").code == "policy_denied", "\(name)")
        }
    }

    @Test func `by issuer, what it does not show is not among the answers`() async throws {
        let narrow = try await Narrow()
        // On the daemon's own socket two accounts have the issuer.
        #expect(await narrow.house.ask("GET", "/v1/session?issuer=https://id.example").code == "state_conflict")
        let answer = await narrow.ask("GET", "/v1/session?issuer=https://id.example")
        #expect(answer["account"] == "work" && answer["access_token"] == "access-1")
        #expect(await narrow.ask("GET", "/v1/session?issuer=https://other.example").code == "account_not_found")
        #expect(await narrow.ask("GET", "/v1/session").code == "validation_failed")
    }

    @Test func `NAT-28: with a ceiling it asks for a token that is no wider, and keeps it`() async throws {
        let narrow = try await Narrow(["openid"])
        narrow.house.provider.answerNext(Self.turn("narrow", "openid"))
        let answer = await narrow.ask("GET", session)
        #expect(answer["access_token"] == "narrow" && answer["scope"] == "openid")
        #expect(await narrow.ask("GET", session)["access_token"] == "narrow")
        #expect(await narrow.ask("GET", session + "?scope=openid")["access_token"] == "narrow")
        #expect(narrow.house.provider.tokenRequests == 2)
        // The daemon's own socket is not narrowed by it.
        #expect(await narrow.house.ask("GET", session)["scope"] == "openid email")
    }

    @Test(arguments: [
        Self.turn("wide", "openid email"), Self.turn("wide", "other"), Self.turn("silent", nil),
        Self.turn("silent", ""), Self.turn("odd", "OPENID"),
    ])
    func `with a ceiling, a token that the provider does not say is within it is not served`(
        turn: FakeProvider.Turn
    ) async throws {
        let narrow = try await Narrow(["openid"])
        narrow.house.provider.answerNext(turn)
        let answer = await narrow.ask("GET", session)
        #expect(answer.status == 403 && answer.code == "policy_denied")
        #expect(answer["access_token"] == nil && !answer.text.contains("access-1"))
        // And not from the cache either.
        #expect(await narrow.ask("GET", session).code == "policy_denied")
        #expect(narrow.house.provider.tokenRequests == 2)
    }

    @Test func `a ceiling that the session's own token does not reach costs no request`() async throws {
        let narrow = try await Narrow(["openid", "email", "profile"])
        #expect(await narrow.ask("GET", session)["access_token"] == "access-1")
        #expect(narrow.house.provider.tokenRequests == 1)
    }

    @Test func `a scope within the ceiling is asked for, one beyond it is refused unasked`() async throws {
        let narrow = try await Narrow(["openid", "email"])
        narrow.house.provider.answerNext(Self.turn("narrow", "email"))
        #expect(await narrow.ask("GET", session + "?scope=email")["access_token"] == "narrow")
        for scope in ["mail", "openid%20mail", "OPENID"] {
            #expect(await narrow.ask("GET", session + "?scope=\(scope)").code == "policy_denied", "\(scope)")
        }
        #expect(await narrow.ask("GET", session + "?scope=").code == "validation_failed")
        #expect(narrow.house.provider.tokenRequests == 2)
    }

    @Test func `without a ceiling, a scope beyond the session's own is refused unasked`() async throws {
        let narrow = try await Narrow()
        #expect(await narrow.ask("GET", session + "?scope=email").status == 200)
        #expect(await narrow.ask("GET", session + "?scope=admin").code == "policy_denied")
        #expect(narrow.house.provider.tokenRequests == 2)
    }

    @Test func `an account that is signed out says so, and no sign-in begins`() async throws {
        let narrow = try await Narrow(["openid"], signsIn: false)
        let answer = await narrow.ask("GET", session)
        #expect(answer.status == 401 && answer.code == "sign_in_required")
        #expect(await narrow.house.ask("GET", "/v1/flows")["flows"]?.array == [])
    }

    @Test func `an account that is gone is not found`() async throws {
        let narrow = try await Narrow()
        try await narrow.house.configure([try House.account("hidden")])
        #expect(await narrow.ask("GET", "/v1/accounts")["accounts"] == [])
        #expect(await narrow.ask("GET", session).code == "account_not_found")
    }

    @Test func `serves nothing from the instant in which its time is over`() async throws {
        let narrow = try await Narrow(lifetime: 10)
        narrow.house.clock.advance(by: 9)
        #expect(await narrow.ask("GET", session).status == 200)
        narrow.house.clock.advance(by: 1)
        #expect(await narrow.ask("GET", session).code == "policy_denied")
    }

    @Test func `lets its users connect and nobody else, and the audit log says who was turned away`() async throws {
        let narrow = try await Narrow()
        for uid: UInt32 in [1_000, 0, 100_999] { #expect(narrow.api.accepts(.local(uid: uid, pid: 1))) }
        for uid: UInt32 in [1_001, 65_534, 100_998, 1_001] { #expect(!narrow.api.accepts(.local(uid: uid, pid: 1))) }
        let tcp = Peer.network(client: [127, 0, 0, 1], clientPort: 1, server: [127, 0, 0, 1], serverPort: 2)
        #expect(!narrow.api.accepts(tcp))
        #expect(await narrow.ask("GET", session, uid: 1_001).code == "policy_denied")
        let entries = await narrow.house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let refused = entries.filter { $0["event"] == "grant_refused" }
        #expect(refused.compactMap { $0["uid"]?.integer } == [1_001, 65_534, 100_998])
        #expect(refused.allSatisfy { $0["grant"] == "ci" })
    }

    @Test func `the audit log says which socket gave which token to whom`() async throws {
        let narrow = try await Narrow()
        let memory = ConnectionMemory()
        for _ in 0..<3 { _ = await narrow.ask("GET", session, uid: 100_999, memory: memory) }
        await narrow.house.ask("GET", session)
        let entries = await narrow.house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let given = entries.filter { $0["event"] == "hand_out" }
        let there = given.filter { $0["grant"] == "ci" }
        #expect(there.allSatisfy { $0["uid"] == 100_999 && $0["account"] == "work" && $0["operation"] == "token" })
        #expect(there.compactMap { $0["count"]?.integer }.reduce(0, +) == 3)
        #expect(given.contains { $0["grant"] == nil && $0["uid"] == 1_000 })
    }

    @Test func `web pages are not served`() async throws {
        let narrow = try await Narrow()
        let answer = await narrow.ask("GET", session, fields: [("Origin", "https://evil.example")])
        #expect(answer.code == "policy_denied")
    }

    private static func turn(_ token: String, _ scope: String?) -> FakeProvider.Turn {
        let scope = scope.map { #","scope":"\#($0)""# } ?? ""
        return FakeProvider.Turn(
            status: 200,
            body: #"{"access_token":"\#(token)","token_type":"Bearer","expires_in":3600\#(scope)}"#)
    }
}
