import BrokerCore
import LocalHTTP
import RingbackAPI
import RingbackBase
import SupabaseSignIn
import Testing

@testable import APIServer
@testable import BrokerTestSupport
@testable import Records

@Suite(.timeLimit(.minutes(5))) struct `The way of a request` {
    @Test(arguments: [
        "/", "", "/v1", "/v2/status", "/v1/statu", "/v1/status/", "/v1/accounts//session", "/v1/Accounts", "*",
    ])
    func `what leads nowhere is not found`(path: String) async throws {
        let answer = try await APIHouse().ask("GET", path)
        #expect(answer.status == 404)
        #expect(answer.code == "not_found")
    }

    @Test(arguments: Set(Endpoint.allCases.map(\.path)).sorted())
    func `another method than a path has is told which ones there are`(path: String) async throws {
        let house = try await APIHouse()
        let methods = Endpoint.allCases.filter { $0.path == path }.map(\.method.rawValue).sorted()
        let concrete = path.replacing("{account}", with: "work").replacing("{flow}", with: "x")
        let tried = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get"]
        for method in tried where !methods.contains(method) {
            let answer = await house.ask(method, concrete)
            #expect(answer.status == 405)
            #expect(answer.code == "method_not_allowed")
            #expect(answer.response.fields["Allow"] == methods.joined(separator: ", "))
        }
    }

    @Test(arguments: Endpoint.allCases) func `a query parameter that no route has is refused before anything is done`(
        endpoint: Endpoint
    ) async throws {
        let house = try await APIHouse()
        let path = endpoint.path.split(separator: "/").map { $0.hasPrefix("{") ? "work" : String($0) }
        let answer = await house.ask(endpoint.method.rawValue, "/" + path.joined(separator: "/") + "?scop=openid")
        #expect(answer.status == 400 && answer.code == "invalid_request", "\(answer)")
        let known = try #require(Router.shared[endpoint]).query.map(\.name)
        let told = answer["detail"]?.string ?? ""
        #expect(told.contains("“scop”") && known.allSatisfy { told.contains($0) }, "\(told)")
    }

    @Test(arguments: ["Origin", "origin", "REFERER", "Sec-Fetch-Site", "sec-fetch-mode", "Sec-Fetch-Anything"])
    func `ADV-01, ADV-06: a web page's request is refused on every way`(field: String) async throws {
        let house = try await APIHouse.signedIn()
        for (method, target) in [("GET", "/v1/accounts/work/session"), ("GET", "/v1/status"), ("POST", "/v1/reload")] {
            let answer = await house.ask(method, target, fields: [(field, "")])
            #expect(answer.status == 403)
            #expect(answer.code == "policy_denied")
            #expect(!answer.text.contains("access-"))
        }
    }

    @Test(
        arguments: [
            .local(uid: 1_001, pid: 1), .local(uid: 65_534, pid: 1),
            .network(client: [127, 0, 0, 1], clientPort: 1, server: [127, 0, 0, 1], serverPort: 2),
        ] as [Peer])
    func `a peer that the policy does not know gets nothing`(peer: Peer) async throws {
        let house = try await APIHouse.signedIn()
        for target in [
            "/v1/accounts/work/session", "/v1/accounts/work/session?min_valid=1", "/v1/accounts", "/v1/peer",
        ] {
            let answer = await house.ask("GET", target, peer: peer)
            #expect(answer.status == 403)
            #expect(answer.code == "policy_denied")
        }
    }

    @Test func `the decision of a connection is made anew when the policy changes`() async throws {
        let house = try await APIHouse()
        let memory = ConnectionMemory()
        func ask(uid: UInt32) async -> Int {
            let request = ServerRequest(
                method: "GET", target: "/v1/accounts", fields: HTTPFields(), body: [], peer: .local(uid: uid, pid: 1),
                memory: memory)
            return await house.api.respond(request).status
        }
        #expect(await ask(uid: 1_000) == 200)
        // A connection has one peer: what was decided for it stands until the policy changes.
        #expect(await ask(uid: 1_001) == 200)
        house.api.policy.invalidate()
        #expect(await ask(uid: 1_001) == 403)
    }

    static let bodies = ["/v1/accounts/work/sign-in", "/v1/callbacks", "/v1/accounts/work/refresh"]

    @Test(arguments: bodies)
    func `a body that is not one JSON object is refused`(target: String) async throws {
        let house = try await APIHouse()
        let tooDeep = String(repeating: #"{"a":"#, count: 40) + "1" + String(repeating: "}", count: 40)
        for body in [
            "{", "nothing", "[]", "1", "null", #""x""#, #"{"url":"a","url":"b"}"#, #"{"a":1}x"#, "{\"a\":\"\u{1}\"}",
            #"{"a":"\ud800"}"#, "{'a':1}", tooDeep,
        ] {
            let answer = await house.ask("POST", target, body)
            #expect(answer.status == 400, "\(body)")
            #expect(answer.code == "invalid_request")
        }
        let binary = ServerRequest(
            method: "POST", target: target, fields: HTTPFields([("Content-Type", "application/json")]),
            body: [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D], peer: .local(uid: 1_000, pid: 1))
        #expect(await house.api.respond(binary).status == 400)
        #expect(house.provider.tokenRequests == 0)
    }

    @Test(arguments: ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json"])
    func `a body of another media type is refused`(type: String) async throws {
        let house = try await APIHouse()
        for target in `The way of a request`.bodies {
            let answer = await house.ask("POST", target, "{}", fields: [("Content-Type", type)])
            #expect(answer.status == 415)
            #expect(answer.code == "unsupported_media_type")
        }
    }

    @Test func `the media type may be written in any case and have parameters`() async throws {
        let house = try await APIHouse()
        for type in ["Application/JSON", "application/json; charset=utf-8", "application/json;charset=utf-8"] {
            let answer = await house.ask("POST", "/v1/callbacks", "{}", fields: [("Content-Type", type)])
            #expect(answer.code == "validation_failed")
        }
    }

    @Test(arguments: ["min_valid=1&min_valid=2", "a=%zz", "a=%00", "a=%ff", "a=b&a=b"])
    func `a query that is broken or says a thing twice is refused`(query: String) async throws {
        let answer = try await APIHouse().ask("GET", "/v1/accounts/work/session?\(query)")
        #expect(answer.status == 400)
        #expect(answer.code == "invalid_request")
    }

    @Test func `what breaks HTTP is answered with a problem of the same status`() throws {
        for status in [400, 408, 413, 431, 503, 505] {
            let response = SocketAPI.refusal(status)
            #expect(response.status == status)
            guard case .bytes(let bytes) = response.body else { throw Unexpected(status) }
            let json = try JSON(parsing: bytes)
            #expect(json["status"]?.integer == status)
            let code = [413: "payload_too_large", 503: "shutting_down"][status] ?? "invalid_request"
            #expect(json["code"]?.string == code)
        }
    }

    @Test func `the words that every answer is searched for are the ones that went to the provider`() async throws {
        let house = try await APIHouse.signedIn()
        await house.ask("POST", "/v1/accounts/work/refresh")
        // Client secret, verifier, and the refresh tokens of two answers.
        #expect(house.provider.secrets.count == 4)
        #expect(house.provider.secrets.contains { $0.utf8.count == 43 })
        for target in ["/v1/accounts", "/v1/flows", "/v1/status", "/v1/accounts/work/session?include=user,id_token"] {
            await house.ask("GET", target)
        }
        await house.ask("DELETE", "/v1/accounts/work/session")
    }

    @Test func `no answer may be kept`() async throws {
        let house = try await APIHouse.signedIn()
        for target in ["/v1/accounts/work/session", "/v1/accounts/work/session?min_valid=1", "/v1/accounts", "/v1/x"] {
            #expect(await house.ask("GET", target).response.fields["Cache-Control"] == "no-store")
        }
    }
}

@Suite struct `The routes` {
    @Test(arguments: Endpoint.allCases) func `lead to their endpoint, with the parameters of the path`(
        endpoint: Endpoint
    ) throws {
        let values = Dictionary(uniqueKeysWithValues: endpoint.parameters.map { ($0, "org.x-\($0)") })
        let path = values.reduce(endpoint.path) { $0.replacing("{\($1.key)}", with: $1.value) }
        guard case .route(let route, let found) = Router.shared.match(method: endpoint.method.rawValue, path: path)
        else { throw Unexpected("\(endpoint.method) \(path) leads nowhere") }
        #expect(route.endpoint == endpoint && found == values)
    }

    @Test(arguments: [
        "", "/", "v1/status", "/v1", "/v1/", "/v1/status/", "//v1/status", "/v1//status", "/V1/status", "/v1/Status",
        "/v1/./status", "/v1/x/../status", "/v1/%73tatus", "/v1/status;x", "/v1/accounts/", "/v1/accounts//session",
        "/v1/accounts/work/session/", "/v1/accounts/work/sessions", "/v2/status", "/v1/vault", "/v1/vault/locks",
        "/v1/exposed-sockets/x/y",
        "/v1/accounts/work/users", "/v1/accounts/{account}/x", "/v1/status?x", "*",
    ]) func `lead nowhere else`(path: String) throws {
        guard case .nothing = Router.shared.match(method: "GET", path: path) else { throw Unexpected(path) }
    }

    @Test func `take a parameter as it stands`() throws {
        guard case .route(_, let parameters) = Router.shared.match(method: "GET", path: "/v1/accounts/%2e%2e")
        else { throw Unexpected("no route") }
        #expect(parameters == ["account": "%2e%2e"])
    }

    @Test func `are one for each endpoint, by path, then method`() {
        let keys = Router.shared.routes.map { "\($0.endpoint.path) \($0.endpoint.method.rawValue)" }
        #expect(keys == keys.sorted())
        #expect(Set(Router.shared.routes.map(\.endpoint)) == Set(Endpoint.allCases))
        #expect(keys.count == Set(keys).count)
    }

    @Test func `that only read are GET`() {
        for endpoint in Endpoint.allCases where endpoint.operation == .readState {
            #expect(endpoint.method == .get, "\(endpoint)")
        }
    }

    @Test func `operations have the names that clients know`() {
        let words = [
            "read_state", "token", "id_token", "provider_token", "proof", "sign_in", "sign_out", "user",
            "deliver_callback", "deep_link", "manage",
        ]
        #expect(PolicyOperation.allCases.map(\.rawValue) == words)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The members of a request's body` {
    /// A member that is null counts as left out, but it has to be one that the route knows.
    @Test(arguments: Endpoint.allCases.filter { $0.method != .get })
    func `are taken where the description has them`(endpoint: Endpoint) async throws {
        let names = try #require(Router.shared[endpoint]).bodyMembers ?? ["anything", "password"]
        let target = endpoint.parameters.reduce(endpoint.path) { path, name in
            path.replacing("{\(name)}", with: name == "account" ? "app" : "x")
        }
        let body = JSON.object(JSONObject(names.map { .init($0, .null) })).text
        let answer = await (try await SupabaseHouse()).ask(endpoint.method.rawValue, target, body)
        #expect(answer["detail"]?.string?.contains("no such member") != true, "\(answer.text)")
    }

    @Test func `are described for every method of signing in`() throws {
        let described = Set(try #require(Router.shared[.signIn]?.bodyMembers))
        #expect(Call.allProjectFields.subtracting(described).isEmpty)
        let changes = try #require(Router.shared[.updateUser]?.bodyMembers)
        #expect(changes.contains("password_confirmation"))
    }

    @Test func `are closed in the description, but for a function's arguments`() throws {
        let document = OpenAPIDocument.document(version: APIHouse.version)
        for endpoint in Endpoint.allCases {
            let body = document["paths"]?[endpoint.path]?[endpoint.method.rawValue.lowercased()]?["requestBody"]
            guard let schema = body?["content"]?["application/json"]?["schema"] else { continue }
            let isOpen = endpoint == .callFunction || endpoint == .invokeFunction
            #expect((schema["additionalProperties"] == false) == !isOpen, "\(endpoint.path)")
        }
    }

    @Test(arguments: [
        (
            "PATCH", "/user", #"{"pasword":"longer"}"#,
            "pasword: this request has no such member; did you mean password?"
        ),
        ("PATCH", "/user", #"{"zzzzzzzz":null}"#, "zzzzzzzz: this request has no such member. It has: channel, "),
        ("POST", "/reauthenticate", #"{"nonce":"1"}"#, "nonce: this request has no such member. It has none."),
        ("POST", "/refresh", #"{"fource":true}"#, "fource: this request has no such member; did you mean force?"),
    ])
    func `that nobody reads are refused by name`(method: String, target: String, body: String, words: String)
        async throws
    {
        let house = try await SupabaseHouse()
        let answer = await house.ask(method, target, body)
        #expect(answer.status == 400 && answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix(words) == true, "\(answer.text)")
        #expect(house.project.requests.isEmpty)
    }

    @Test func `say a new password twice in the same way, or not at all`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for body in [
            #"{"password":"longer","password_confirmation":"Longer"}"#, #"{"password_confirmation":"longer"}"#,
            #"{"password":"longer","password_confirmation":""}"#, #"{"password":"longer","password_confirmation":1}"#,
        ] {
            let answer = await house.ask("PATCH", "/user", body)
            #expect(answer.code == "validation_failed")
            #expect(answer["detail"]?.string?.hasPrefix("password_confirmation: ") == true, "\(answer.text)")
        }
        #expect(house.project.last("PUT /user") == nil)
        let body = #"{"password":"longer","password_confirmation":"longer"}"#
        #expect(await house.ask("PATCH", "/user", body).status == 200)
        #expect(house.project.last("PUT /user")?.body == ["password": "longer"])
    }
}

@Suite struct `The facts of the last connections` {
    private let recent = RecentFacts()
    private let policy = Policy(owner: 1_000)

    private func caller(_ pid: Int32) -> AuditCaller { AuditCaller(uid: 1_000, pid: pid, serial: 1) }

    private func keep(_ caller: AuditCaller?) -> ConnectionFacts {
        let decision = policy.decide(PolicyPeer(uid: 1_000, pid: 7), account: nil, operation: .readState)
        let facts = ConnectionFacts(decision: decision, caller: caller)
        recent.keep(facts)
        return facts
    }

    @Test func `are those of the same caller`() {
        let caller = caller(7)
        #expect(recent.find(caller, policy.generation) == nil)
        let facts = keep(caller)
        #expect(recent.find(caller, policy.generation) === facts)
        // Another program of the process, or another process with its number: the audit log makes a new caller.
        #expect(recent.find(self.caller(7), policy.generation) == nil)
    }

    @Test func `count only until the policy changes`() {
        let caller = caller(7)
        let former = keep(caller)
        policy.invalidate()
        #expect(recent.find(caller, policy.generation) == nil)
        let facts = keep(caller)
        #expect(recent.find(caller, policy.generation) === facts && facts !== former)
    }

    @Test func `of a few callers`() {
        let callers = (Int32(0)..<9).map(caller)
        for caller in callers { _ = keep(caller) }
        // The last one has taken the place of the first.
        #expect(recent.find(callers[0], policy.generation) == nil)
        for caller in callers.dropFirst() { #expect(recent.find(caller, policy.generation)?.caller === caller) }
        _ = keep(nil)
        #expect(recent.find(self.caller(-1), policy.generation) == nil)
    }
}
