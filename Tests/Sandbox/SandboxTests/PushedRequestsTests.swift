import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The sandbox, given pushed authorization requests` {
    private let request = [
        ("client_id", "ringback-demo"), ("redirect_uri", callback), ("response_type", "code"), ("state", "s"),
        ("code_challenge", challenge), ("code_challenge_method", "S256"), ("scope", "openid"),
    ]

    private func open(_ reference: String, _ visitor: Visitor, client: String = "ringback-demo") async -> Answer {
        let query = FormEncoding.encode([("client_id", client), ("request_uri", reference)])
        return await visitor.send("GET", "/authorize?\(query)")
    }

    @Test func `keeps one for one use by its own client`() async throws {
        let visitor = Visitor.quick { $0.pushedRequests = .offered }
        let answer = await visitor.post("/par", request)
        #expect(answer.status == 201 && answer.json["expires_in"] == 60)
        let reference = try #require(answer.json["request_uri"]?.string)
        let response = await open(reference, visitor)
        #expect(response.status == 303 && response.parameter("state") == "s" && response.parameter("code") != nil)
        #expect(await open(reference, visitor).status == 400)
        let second = try #require(await visitor.post("/par", request).json["request_uri"]?.string)
        #expect(await open(second, visitor, client: "other").status == 400)
        let third = try #require(await visitor.post("/par", request).json["request_uri"]?.string)
        visitor.clock.advance(by: 60)
        #expect(await open(third, visitor).status == 400)
    }

    @Test func `takes no other kind of request where it requires them`() async {
        let visitor = Visitor.quick { $0.pushedRequests = .required }
        let query = FormEncoding.encode(request)
        #expect(await visitor.send("GET", "/authorize?\(query)").status == 400)
        let metadata = await visitor.send("GET", "/.well-known/openid-configuration").json
        #expect(metadata["require_pushed_authorization_requests"] == true)
        #expect(metadata["pushed_authorization_request_endpoint"]?.string == origin + "/par")
    }

    @Test func `refuses what may not be pushed, and everything where it does not offer it`() async {
        let visitor = Visitor.quick { $0.pushedRequests = .offered }
        #expect(await visitor.post("/par", request + [("request_uri", "x")]).error == "invalid_request")
        #expect(await visitor.post("/par", [("client_id", "ringback-demo")]).error == "invalid_request")
        #expect(await visitor.post("/par", [("client_id", "nobody")]).error == "invalid_client")
        let without = Visitor.quick()
        #expect(await without.post("/par", request).status == 404)
        let metadata = await without.send("GET", "/.well-known/openid-configuration").json
        #expect(metadata["pushed_authorization_request_endpoint"] == nil)
    }
}
