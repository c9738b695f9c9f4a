import LocalHTTP
import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A restricted socket` {
    private let session = "/v1/accounts/work/session"

    @Test func `serves the access token of what it shows, and nothing beside it`() async throws {
        let exposed = try await ExposedHouse()
        let answer = await exposed.ask("GET", session)
        #expect(answer.status == 200)
        #expect(
            answer.json.object?.names == [
                "account", "subject", "access_token", "token_type", "scope", "issuer", "expires_at", "expires_in",
            ])
        #expect(answer["access_token"] == "access-1")
        #expect(answer.response.fields["Cache-Control"] == "no-store")
        #expect(
            await exposed.ask("GET", session + "?min_valid=10&timeout=5&subject=alice&kind=access_token").status == 200)
        #expect(await exposed.ask("GET", session + "?subject=bob").code == "state_conflict")
        #expect(await exposed.ask("GET", session + "?min_valid=x").code == "validation_failed")
    }

    @Test func `serves the relay of its MCP server a token of the account, and nothing of another one`() async throws {
        var exposed = try await ExposedHouse()
        exposed.api = ExposedAPI(exposed.house.api, showing: exposed.exposedSocket, isForRelay: true)
        #expect(await exposed.ask("GET", session)["access_token"] == "access-1")
        // The account is at no MCP server.
        #expect(await exposed.ask("GET", "/v1/accounts/work/mcp-server").code == "method_unsupported")
        let digest = #"{"rejected_sha256":"\#(String(repeating: "0", count: 64))"}"#
        #expect(await exposed.ask("POST", "/v1/accounts/work/refresh", digest).status == 200)
        let both = String(digest.dropLast()) + #","force":true}"#
        for (method, target, body) in [
            ("POST", "/v1/accounts/work/refresh", both), ("POST", "/v1/accounts/work/refresh", #"{"force":true}"#),
            ("POST", "/v1/accounts/hidden/refresh", digest), ("GET", "/v1/accounts/hidden/session", nil),
            ("GET", "/v1/accounts/hidden/mcp-server", nil), ("GET", session + "?kind=id_token", nil),
            ("GET", session + "?scope=openid", nil), ("GET", "/v1/status", nil), ("GET", "/v1/accounts", nil),
            ("POST", "/v1/accounts/work/sign-in", "{}"), ("DELETE", session, nil), ("POST", "/v1/vault/lock", "{}"),
        ] as [(String, String, String?)] {
            #expect(await exposed.ask(method, target, body).code == "policy_denied", "\(method) \(target)")
        }
        let admitted = [1_000, 0, 100_999].filter { exposed.api.accepts(.local(uid: $0, pid: 1)) }
        #expect(admitted == [1_000])
    }

    @Test func `serves a reduced status and the accounts that it shows`() async throws {
        let exposed = try await ExposedHouse(["openid", "email"], lifetime: 100)
        let status = await exposed.ask("GET", "/v1/status")
        #expect(status.status == 200)
        #expect(
            Set(status.json.object?.names ?? []) == [
                "version", "uptime", "vault", "accounts", "policy", "exposed_socket",
            ])
        #expect(status["accounts"]?["authenticated"] == 1 && status["accounts"]?["unauthenticated"] == 0)
        #expect(
            status["exposed_socket"] == [
                "name": "ci", "accounts": ["work"], "scope": "email openid",
                "expires_at": .integer(exposed.house.clock.now + 100),
            ])
        let accounts = await exposed.ask("GET", "/v1/accounts")["accounts"]?.array ?? []
        #expect(accounts.map { $0["name"]?.string } == ["work"])
        let account = await exposed.ask("GET", "/v1/accounts/work")
        #expect(account.json == accounts.first)
        #expect(account["state"] == "authenticated" && account["user"]?["email"] == "alice@example.org")
        let told = account["user"]?.object?.names ?? []
        #expect(told.contains("email") && told.allSatisfy(["sub", "id", "email"].contains))
        #expect(account["source"] == "exposed socket ci" && account["flow"] == nil)
        // Not whatever the daemon's own socket tells next.
        #expect(
            ExposedAPI.told == [
                "name", "provider", "state", "source", "stale", "grant", "subject", "user", "aal", "next_aal",
                "expires_at", "error", "provider_host", "ends_at", "refreshable",
            ])
        #expect(account.json.object?.names.allSatisfy(ExposedAPI.told.contains) == true)
    }

    @Test func `what it does not show is refused, whether it is there or not`() async throws {
        let exposed = try await ExposedHouse()
        let there = await exposed.ask("GET", "/v1/accounts/hidden")
        let nowhere = await exposed.ask("GET", "/v1/accounts/nowhere")
        #expect(there.status == 403 && there.code == "policy_denied" && there.text == nowhere.text)
        for name in ["hidden", "nowhere", "WORK", "work%20"] {
            #expect(await exposed.ask("GET", "/v1/accounts/\(name)/session").code == "policy_denied", "\(name)")
        }
    }

    @Test func `by issuer, what it does not show is not among the answers`() async throws {
        let exposed = try await ExposedHouse()
        // On the daemon's own socket two accounts have the issuer.
        #expect(await exposed.house.ask("GET", "/v1/session?issuer=https://id.example").code == "state_conflict")
        let answer = await exposed.ask("GET", "/v1/session?issuer=https://id.example")
        #expect(answer["account"] == "work" && answer["access_token"] == "access-1")
        #expect(await exposed.ask("GET", "/v1/session?issuer=https://other.example").code == "account_not_found")
        #expect(await exposed.ask("GET", "/v1/session").code == "validation_failed")
    }

    @Test func `NAT-28: with a ceiling it asks for a token that is no wider, and keeps it`() async throws {
        let exposed = try await ExposedHouse(["openid"])
        exposed.house.provider.answerNext(Self.turn("downscoped", "openid"))
        let answer = await exposed.ask("GET", session)
        #expect(answer["access_token"] == "downscoped" && answer["scope"] == "openid")
        #expect(await exposed.ask("GET", session)["access_token"] == "downscoped")
        #expect(await exposed.ask("GET", session + "?scope=openid")["access_token"] == "downscoped")
        #expect(exposed.house.provider.tokenRequests == 2)
        // The daemon's own socket is not downscoped by it.
        #expect(await exposed.house.ask("GET", session)["scope"] == "openid email")
    }

    @Test(arguments: [
        Self.turn("wide", "openid email"), Self.turn("wide", "other"), Self.turn("silent", nil),
        Self.turn("silent", ""), Self.turn("odd", "OPENID"),
    ])
    func `with a ceiling, a token that the provider does not say is within it is not served`(
        turn: CanaryProvider.Turn
    ) async throws {
        let exposed = try await ExposedHouse(["openid"])
        exposed.house.provider.answerNext(turn)
        let answer = await exposed.ask("GET", session)
        #expect(answer.status == 403 && answer.code == "policy_denied")
        #expect(answer["access_token"] == nil && !answer.text.contains("access-1"))
        // And not from the cache either.
        #expect(await exposed.ask("GET", session).code == "policy_denied")
        #expect(exposed.house.provider.tokenRequests == 2)
    }

    @Test func `a ceiling that the session's own token does not reach costs no request`() async throws {
        let exposed = try await ExposedHouse(["openid", "email", "profile"])
        #expect(await exposed.ask("GET", session)["access_token"] == "access-1")
        #expect(exposed.house.provider.tokenRequests == 1)
    }

    @Test func `of a ceiling, what the account never asks its provider for is not asked for`() async throws {
        let exposed = try await ExposedHouse(["openid", "calendar"])
        exposed.house.provider.answerNext(Self.turn("downscoped", "openid"))
        #expect(await exposed.ask("GET", session)["access_token"] == "downscoped")
        #expect(exposed.house.provider.lastScope == "openid")
    }

    @Test func `an answer without a scope, and one with too much, are told apart`() async throws {
        for (turn, words) in [
            (Self.turn("silent", nil), "did not state the token's scope"),
            (Self.turn("wide", "openid email"), "a token for more than “openid”: email."),
        ] {
            let exposed = try await ExposedHouse(["openid"])
            exposed.house.provider.answerNext(turn)
            let answer = await exposed.ask("GET", session)
            #expect(answer["detail"]?.string?.contains(words) == true, "\(answer.text)")
        }
    }

    @Test func `a scope within the ceiling is asked for, one beyond it is refused unasked`() async throws {
        let exposed = try await ExposedHouse(["openid", "email"])
        exposed.house.provider.answerNext(Self.turn("downscoped", "email"))
        #expect(await exposed.ask("GET", session + "?scope=email")["access_token"] == "downscoped")
        for scope in ["mail", "openid%20mail", "OPENID"] {
            #expect(await exposed.ask("GET", session + "?scope=\(scope)").code == "policy_denied", "\(scope)")
        }
        #expect(await exposed.ask("GET", session + "?scope=").code == "validation_failed")
        #expect(exposed.house.provider.tokenRequests == 2)
    }

    @Test func `without a ceiling, a scope beyond the session's own is refused unasked`() async throws {
        let exposed = try await ExposedHouse()
        exposed.house.provider.answerNext(Self.turn("downscoped", "email"))
        #expect(await exposed.ask("GET", session + "?scope=email").status == 200)
        #expect(await exposed.ask("GET", session + "?scope=admin").code == "policy_denied")
        #expect(exposed.house.provider.tokenRequests == 2)
    }

    @Test func `an account that is signed out says so, and no sign-in begins`() async throws {
        let exposed = try await ExposedHouse(["openid"], signsIn: false)
        let answer = await exposed.ask("GET", session)
        #expect(answer.status == 401 && answer.code == "sign_in_required")
        #expect(await exposed.house.ask("GET", "/v1/flows")["flows"]?.array == [])
    }

    @Test func `an account that is gone is not found`() async throws {
        let exposed = try await ExposedHouse()
        try await exposed.house.configure([try APIHouse.account("hidden")])
        #expect(await exposed.ask("GET", "/v1/accounts")["accounts"] == [])
        #expect(await exposed.ask("GET", session).code == "account_not_found")
    }

    @Test func `an account that is another one now is not served, before the socket is closed for it`() async throws {
        let exposed = try await ExposedHouse()
        var account = try APIHouse.account("work")
        account.clientID = "another"
        try await exposed.house.configure([account])
        for target in [session, "/v1/accounts/work"] {
            #expect(await exposed.ask("GET", target).code == "policy_denied", "\(target)")
        }
        #expect(await exposed.ask("GET", "/v1/session?issuer=https://id.example").code == "policy_denied")
        #expect(await exposed.ask("GET", "/v1/accounts")["accounts"] == [])
        #expect(await exposed.ask("GET", "/v1/status")["accounts"]?["unauthenticated"] == 0)
        try await exposed.house.configure([try APIHouse.account("work")])
        #expect(await exposed.ask("GET", session).status == 200)
    }

    @Test func `what only the daemon's own machine can mend is said to be for there`() async throws {
        let exposed = try await ExposedHouse(signsIn: false)
        let answer = await exposed.ask("GET", session)
        #expect(answer["detail"] == "work is not signed in.")
        #expect(answer["exposed_socket"] == "ci" && answer["recovery"] == "sign_in")
        #expect(await exposed.ask("GET", "/v1/events")["exposed_socket"] == "ci")
    }

    @Test func `serves nothing from the instant in which its time is over`() async throws {
        let exposed = try await ExposedHouse(lifetime: 10)
        exposed.house.clock.advance(by: 9)
        #expect(await exposed.ask("GET", session).status == 200)
        exposed.house.clock.advance(by: 1)
        #expect(await exposed.ask("GET", session).code == "policy_denied")
    }

    @Test func `lets its users connect and nobody else, and the audit log says who was turned away`() async throws {
        let exposed = try await ExposedHouse()
        for uid: UInt32 in [1_000, 0, 100_999] { #expect(exposed.api.accepts(.local(uid: uid, pid: 1))) }
        for uid: UInt32 in [1_001, 65_534, 100_998, 1_001] { #expect(!exposed.api.accepts(.local(uid: uid, pid: 1))) }
        let tcp = Peer.network(client: [127, 0, 0, 1], clientPort: 1, server: [127, 0, 0, 1], serverPort: 2)
        #expect(!exposed.api.accepts(tcp))
        #expect(await exposed.ask("GET", session, uid: 1_001).code == "policy_denied")
        let entries = await exposed.house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let refused = entries.filter { $0["event"] == "exposed_socket_refused" }
        #expect(refused.compactMap { $0["uid"]?.integer } == [1_001, 65_534, 100_998])
        #expect(refused.allSatisfy { $0["exposed_socket"] == "ci" })
    }

    @Test func `the audit log says which socket gave which token to whom`() async throws {
        let exposed = try await ExposedHouse()
        let memory = ConnectionMemory()
        for _ in 0..<3 { _ = await exposed.ask("GET", session, uid: 100_999, memory: memory) }
        await exposed.house.ask("GET", session)
        let entries = await exposed.house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let given = entries.filter { $0["event"] == "issued_token" }
        let there = given.filter { $0["exposed_socket"] == "ci" }
        #expect(there.allSatisfy { $0["uid"] == 100_999 && $0["account"] == "work" && $0["operation"] == "token" })
        #expect(there.compactMap { $0["count"]?.integer }.reduce(0, +) == 3)
        #expect(given.contains { $0["exposed_socket"] == nil && $0["uid"] == 1_000 })
    }

    @Test func `web pages are not served`() async throws {
        let exposed = try await ExposedHouse()
        let answer = await exposed.ask("GET", session, fields: [("Origin", "https://evil.example")])
        #expect(answer.code == "policy_denied")
    }

    @Test func `makes the provider be asked so often and no more, and costs nobody else a token`() async throws {
        let exposed = try await ExposedHouse(["openid", "email"])
        let refusal = CanaryProvider.Turn(status: 400, body: #"{"error":"invalid_scope"}"#)
        let before = exposed.house.provider.tokenRequests
        for _ in 0..<30 {
            exposed.house.provider.answerNext(refusal)
            #expect(await exposed.ask("GET", session + "?scope=email").code == "provider_error")
        }
        let over = await exposed.ask("GET", session + "?scope=email")
        #expect(over.status == 429 && over.code == "rate_limited", "\(over.text)")
        #expect(over["retry_after"] == 60 && over["detail"]?.string?.contains("This socket") == true, "\(over.text)")
        #expect(exposed.house.provider.tokenRequests == before + 30)
        // What is held is served, here and to everybody; and the daemon's own socket asks.
        #expect(await exposed.ask("GET", session)["access_token"] == "access-1")
        exposed.house.provider.answerNext(Self.turn("downscoped", "email"))
        #expect(await exposed.house.ask("GET", session + "?scope=email")["access_token"] == "downscoped")
        #expect(await exposed.ask("GET", session + "?scope=email")["access_token"] == "downscoped")
        exposed.house.clock.advance(by: 60)
        exposed.house.provider.answerNext(refusal)
        #expect(await exposed.ask("GET", session + "?scope=openid").code == "provider_error")
    }

    private static func turn(_ token: String, _ scope: String?) -> CanaryProvider.Turn {
        let scope = scope.map { #","scope":"\#($0)""# } ?? ""
        return CanaryProvider.Turn(
            status: 200,
            body: #"{"access_token":"\#(token)","token_type":"Bearer","expires_in":3600\#(scope)}"#)
    }
}

/// Every request that could be made of a restricted socket: each path of the route table with every method that a route
/// has, and each query member that any route reads. A route or a member that comes later is in these tables by itself, and
/// has to be refused.
@Suite(.timeLimit(.minutes(1))) struct `Of all routes, a restricted socket` {
    /// What the issue promises, written down here once more: the tests do not believe the code's own list.
    private static let served = [
        "GET /v1/status": [], "GET /v1/accounts": [], "GET /v1/accounts/{account}": [],
        "GET /v1/accounts/{account}/session": ["min_valid", "timeout", "scope", "subject", "kind"],
        "GET /v1/session": ["min_valid", "timeout", "scope", "subject", "kind", "issuer"],
        "POST /v1/lookup": [],
    ]
    private static let bodies = ["POST /v1/lookup": #"{"url":"https://git.example.org/x"}"#]

    /// With an origin of the account that is shown.
    private func exposed() async throws -> ExposedHouse {
        let exposed = try await ExposedHouse()
        let rule = OriginRule(try OriginPattern(parsing: "https://git.example.org/*"))
        exposed.house.origins.configure([Origin(rule, account: try #require(AccountName("work")))])
        return exposed
    }

    /// With an account that is shown, and a thing of everything else.
    private static func path(_ pattern: String) -> String {
        "/"
            + pattern.split(separator: "/").map { part in
                part == "{account}" ? "work" : part.hasPrefix("{") ? "x" : String(part)
            }.joined(separator: "/")
    }

    private static let methods =
        Set(Endpoint.Method.allCases.map(\.rawValue)).union([
            "HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "NEW",
        ])
        .sorted()
    private static let paths = Set(Endpoint.allCases.map(\.path)).sorted()

    @Test func `serves six, and no other method of any path`() async throws {
        let exposed = try await exposed()
        var answered: Set<String> = []
        for pattern in Self.paths {
            for method in Self.methods {
                let target = Self.path(pattern) + (pattern == "/v1/session" ? "?issuer=https://id.example" : "")
                let bodies =
                    Self.served["\(method) \(pattern)"] == nil
                    ? [nil, "{}", "no JSON"] as [String?] : [Self.bodies["\(method) \(pattern)"]]
                for body in bodies {
                    let answer = await exposed.ask(method, target, body)
                    guard answer.status != 200 else {
                        answered.insert("\(method) \(pattern)")
                        continue
                    }
                    #expect(answer.status == 403 && answer.code == "policy_denied", "\(method) \(pattern)")
                    #expect(answer["exposed_socket"] == "ci")
                }
            }
        }
        #expect(answered == Set(Self.served.keys))
        #expect(exposed.house.provider.tokenRequests == 1)
    }

    @Test func `takes no query member but its own`() async throws {
        let exposed = try await exposed()
        // Of all routes: what one of them reads, another may begin to read.
        let members = Set(Router.shared.routes.flatMap { $0.query.map(\.name) }).union(["include", "x", ""])
        // The token for fewer scopes is fetched once. The provider gives no more scope than was requested.
        exposed.house.provider.answerNext(
            CanaryProvider.Turn(
                status: 200,
                body: #"{"access_token":"downscoped","token_type":"Bearer","expires_in":3600,"scope":"openid"}"#))
        #expect(await exposed.ask("GET", "/v1/accounts/work/session?scope=openid").status == 200)
        #expect(members.isSuperset(of: ["sign_in", "audience", "resource", "include", "wait", "all", "end_session"]))
        for (route, own) in Self.served {
            let parts = route.split(separator: " ").map(String.init)
            let path = Self.path(parts[1])
            for member in members.sorted() where !own.contains(member) {
                for value in ["", "x", "true"] {
                    let answer = await exposed.ask(parts[0], "\(path)?\(member)=\(value)", Self.bodies[route])
                    #expect(answer.status == 403 && answer.code == "policy_denied", "\(route)?\(member)=\(value)")
                }
            }
            for member in own {
                let value = ["scope": "openid", "issuer": "https://id.example", "subject": "alice"][member]
                let kind = member == "kind" ? "access_token" : "5"
                let issuer = route == "GET /v1/session" && member != "issuer" ? "&issuer=https://id.example" : ""
                let answer = await exposed.ask("GET", "\(path)?\(member)=\(value ?? kind)\(issuer)")
                #expect(answer.status == 200, "\(route)?\(member): \(answer.text)")
            }
        }
    }

    @Test(arguments: [
        "sign_in=wait", "include=user", "include=id_token", "include=provider_token", "include=profile", "include=",
        "audience=x", "resource=https://x.example", "kind=id_token", "something=new", "sign_in=x",
    ])
    func `refuses what asks for more than a downscoped access token`(query: String) async throws {
        let exposed = try await ExposedHouse()
        for target in ["/v1/accounts/work/session", "/v1/session"] {
            let answer = await exposed.ask("GET", "\(target)?\(query)")
            #expect(answer.status == 403 && answer.code == "policy_denied", "\(target)?\(query)")
        }
        #expect(exposed.house.provider.tokenRequests == 1)
    }

    @Test func `serves no path that is none`() async throws {
        let exposed = try await ExposedHouse()
        for path in ["/", "/v2", "/v1/accounts/", "/v1/accounts/work/other", "/v1/accounts/work/session/"] {
            #expect(await exposed.ask("GET", path).code == "policy_denied", "\(path)")
        }
    }

    @Test func `allows by policy, too, the operations of those routes alone`() {
        let own = Set(ExposedAPI.services.keys.map(\.operation))
        for givesProofs in [true, false] {
            let socket = Self.exposedSocket(givesProofs)
            let allowed = PolicyOperation.allCases.filter { operation in
                Policy(owner: 1, showing: .some(socket)).decide(
                    PolicyPeer(uid: 1, pid: 1), account: "work", operation: operation
                ).isAllowed
            }
            #expect(Set(allowed) == (givesProofs ? own : own.subtracting([.proof])))
        }
    }

    private static func exposedSocket(_ givesProofs: Bool) -> ExposedSocket {
        var order = ExposedSocket.Order(name: "ci", accounts: [AccountName("work")].compactMap { $0 })
        order.givesProofs = givesProofs
        return ExposedSocket(
            id: "x", order: order, origin: .call, createdAt: WallInstant(seconds: 0), expiry: nil)
    }
}
