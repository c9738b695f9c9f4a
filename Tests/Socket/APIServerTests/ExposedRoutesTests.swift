import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore

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
    /// The bodies of requests that are served.
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
        let own = ExposedAPI.services.keys.map(\.operation)
        let allowed = PolicyOperation.allCases.filter { operation in
            Policy(owner: 1, showing: .some(Self.exposedSocket)).decide(
                PolicyPeer(uid: 1, pid: 1), account: "work", operation: operation
            ).isAllowed
        }
        #expect(Set(allowed) == Set(own))
    }

    private static let exposedSocket = ExposedSocket(
        id: "x", order: ExposedSocket.Order(name: "ci", accounts: [AccountName("work")].compactMap { $0 }),
        origin: .call, createdAt: WallInstant(seconds: 0), expiry: nil)
}
