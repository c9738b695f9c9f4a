import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The authorization endpoint` {
    @Test func `a user signs in on a page and the client gets a code, its state and the issuer`() async throws {
        let visitor = Visitor()
        let page = await visitor.authorize()
        #expect(page.status == 200)
        let name = try #require(page.hidden("interaction"))
        let answer = await visitor.post(
            "/sign-in", [("interaction", name), ("user", "bob"), ("decision", "allow")])
        #expect(answer.status == 303)
        #expect(answer.location?.hasPrefix(callback + "?") == true)
        #expect(answer.parameter("state") == "the-state")
        #expect(answer.parameter("iss") == origin)
        let tokens = await visitor.exchange(try #require(answer.parameter("code")))
        #expect(try TakenApart(tokens.json.text("id_token")).claims["sub"] == "bob")
        #expect(await visitor.counter("sign_ins") == 1)

        let again = await visitor.post("/sign-in", [("interaction", name), ("user", "bob"), ("decision", "allow")])
        #expect(again.status == 400)
        #expect(again.location == nil)
    }

    @Test func `a user who says no sends access_denied`() async throws {
        let visitor = Visitor()
        let name = try #require(await visitor.authorize().hidden("interaction"))
        let answer = await visitor.post("/sign-in", [("interaction", name), ("decision", "deny")])
        #expect(answer.parameter("error") == "access_denied")
        #expect(answer.parameter("state") == "the-state")
        #expect(answer.parameter("iss") == origin)
        #expect(await visitor.counter("denials") == 1)
        #expect(await visitor.counter("codes_issued") == 0)
    }

    @Test func `the page asks again when nobody is chosen`() async throws {
        let visitor = Visitor()
        let name = try #require(await visitor.authorize().hidden("interaction"))
        let answer = await visitor.post(
            "/sign-in", [("interaction", name), ("user", "mallory"), ("decision", "allow")])
        #expect(answer.status == 422)
        #expect(answer.text.contains("role=\"alert\""))
        #expect(answer.hidden("interaction") == name)
    }

    @Test func `a page ends after ten minutes`() async throws {
        let visitor = Visitor()
        let name = try #require(await visitor.authorize().hidden("interaction"))
        visitor.clock.advance(by: 601)
        let answer = await visitor.post("/sign-in", [("interaction", name), ("user", "bob"), ("decision", "allow")])
        #expect(answer.status == 400)
    }

    @Test(
        arguments: [
            ["client_id": nil], ["client_id": "nobody"], ["redirect_uri": nil],
            ["redirect_uri": "https://evil.example.org/"],
            ["redirect_uri": "swisscoin://auth-callback"],
        ] as [[String: String?]])
    func `no redirect goes to a place that is not the client's`(changes: [String: String?]) async {
        let answer = await Visitor.quick().authorize(changes)
        #expect(answer.status == 400)
        #expect(answer.location == nil)
    }

    @Test func `a repeated client or redirect URI is answered on a page`() async {
        let visitor = Visitor.quick()
        for name in ["client_id", "redirect_uri"] {
            let query: [(String, String)] = [
                ("client_id", "ringback-demo"), ("redirect_uri", callback), ("response_type", "code"), (name, callback),
            ]
            let answer = await visitor.get("/authorize", query)
            #expect(answer.status == 400)
            #expect(answer.location == nil)
        }
    }

    @Test(
        arguments: [
            (["code_challenge": nil], "invalid_request"), (["code_challenge_method": "plain"], "invalid_request"),
            (["code_challenge_method": nil], "invalid_request"), (["code_challenge": "short"], "invalid_request"),
            (["response_type": "token"], "unsupported_response_type"), (["response_type": nil], "invalid_request"),
            (["response_mode": "fragment"], "invalid_request"), (["scope": "open\"id"], "invalid_scope"),
            (["request": "e30."], "request_not_supported"),
            (["request_uri": "https://a.example/"], "request_uri_not_supported"), (["max_age": "x"], "invalid_request"),
        ] as [([String: String?], String)])
    func `a wrong request is told to the client`(changes: [String: String?], error: String) async {
        let answer = await Visitor.quick().authorize(changes)
        #expect(answer.status == 303)
        #expect(answer.parameter("error") == error)
        #expect(answer.parameter("state") == "the-state")
        #expect(answer.parameter("iss") == origin)
        #expect(answer.parameter("code") == nil)
    }

    @Test func `a repeated state is sent back neither time`() async {
        let answer = await Visitor.quick().get(
            "/authorize",
            [
                ("client_id", "ringback-demo"), ("redirect_uri", callback), ("response_type", "code"), ("state", "a"),
                ("state", "b"), ("code_challenge", challenge), ("code_challenge_method", "S256"),
            ])
        #expect(answer.parameter("error") == "invalid_request")
        #expect(answer.parameter("state") == nil)
    }

    @Test func `prompt none needs somebody who is signed in`() async {
        #expect(await Visitor().authorize(["prompt": "none"]).parameter("error") == "login_required")
        #expect(await Visitor.quick().authorize(["prompt": "none"]).parameter("code") != nil)
    }

    @Test func `a nonce can be demanded`() async {
        let visitor = Visitor.quick { $0.requiresNonce = true }
        #expect(await visitor.authorize(["nonce": nil]).parameter("error") == "invalid_request")
        #expect(await visitor.authorize().parameter("code") != nil)
    }

    @Test func `the request may be a form`() async {
        let answer = await Visitor.quick().post(
            "/authorize",
            [
                ("client_id", "ringback-demo"), ("redirect_uri", callback), ("response_type", "code"),
                ("code_challenge", challenge), ("code_challenge_method", "S256"),
            ])
        #expect(answer.parameter("code") != nil)
    }

    @Test func `the answer may be a form`() async {
        let answer = await Visitor.quick().authorize(["response_mode": "form_post"])
        #expect(answer.status == 200)
        #expect(answer.text.contains("action=\"\(callback)\""))
        #expect(answer.hidden("state") == "the-state")
        #expect(answer.hidden("code") != nil)
        #expect(answer.fields["Content-Security-Policy"]?.contains("script-src 'sha256-") == true)
    }

    @Test func `a redirect URI keeps its query, and a custom scheme its form`() async {
        var options = SandboxOptions()
        options.settings.autoApprovedUser = "alice"
        options.clients[0].redirectURIs = ["swisscoin://auth-callback"]
        let visitor = Visitor(options)
        let scheme = await visitor.authorize(["redirect_uri": "swisscoin://auth-callback"])
        #expect(scheme.location?.hasPrefix("swisscoin://auth-callback?code=") == true)
        let query = await visitor.authorize(["redirect_uri": callback + "?flow=1"])
        #expect(query.location?.hasPrefix(callback + "?flow=1&code=") == true)
    }
}
