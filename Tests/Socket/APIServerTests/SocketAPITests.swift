import BrokerCore
import LocalHTTP
import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer

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
    func `a web page's request is refused on every way`(field: String) async throws {
        let house = try await APIHouse()
        try await house.signIn()
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
        let house = try await APIHouse()
        try await house.signIn()
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

    // MARK: Bodies and queries

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

    @Test func `what breaks HTTP is answered with a problem of the same status`() {
        for status in [400, 408, 413, 431, 503, 505] {
            let response = SocketAPI.refusal(status)
            #expect(response.status == status)
            guard case .bytes(let bytes) = response.body, let json = try? JSON(parsing: bytes) else {
                Issue.record("no problem for \(status)")
                continue
            }
            #expect(json["status"]?.integer == status)
            let code = [413: "payload_too_large", 503: "shutting_down"][status] ?? "invalid_request"
            #expect(json["code"]?.string == code)
        }
    }

    @Test func `the words that every answer is searched for are the ones that went to the provider`() async throws {
        let house = try await APIHouse()
        try await house.signIn()
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
        let house = try await APIHouse()
        try await house.signIn()
        for target in ["/v1/accounts/work/session", "/v1/accounts/work/session?min_valid=1", "/v1/accounts", "/v1/x"] {
            #expect(await house.ask("GET", target).response.fields["Cache-Control"] == "no-store")
        }
    }
}
