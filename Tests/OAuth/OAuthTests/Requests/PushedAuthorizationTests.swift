import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Pushed authorization requests` {
    private func authorization() throws -> AuthorizationRequest {
        try AuthorizationRequest(
            endpoint: "https://id.example.org/authorize?tenant=1", clientID: "me", redirectURI: "http://127.0.0.1:1/c",
            scopes: ["openid"], state: Secret("s"), nonce: Secret("n"), codeChallenge: "c", responseMode: .formPost,
            additionalParameters: [("prompt", "consent")])
    }

    private func form(_ registration: ClientRegistration) throws -> [FormEncoding.Pair] {
        let request = PushedAuthorization.request(
            try authorization(), registration: registration, endpoint: "https://id.example.org/par")
        #expect(request.method == "POST" && request.url == "https://id.example.org/par")
        #expect((request.authorization != nil) == (registration.authentication == .clientSecretBasic))
        return try FormEncoding.parse(request.body?.revealedBytes() ?? [])
    }

    @Test func `PAR-01: hold everything once, with the client's authentication, and no request_uri`() throws {
        for authentication in [ClientAuthentication.none, .clientSecretPost, .clientSecretBasic] {
            let pairs = try form(
                ClientRegistration(clientID: "me", authentication: authentication, secret: Secret("hush")))
            let names = pairs.map(\.name)
            #expect(Set(names).count == names.count)
            let secret = authentication == .clientSecretPost ? ["client_secret"] : []
            #expect(
                Set(names)
                    == Set(
                        [
                            "client_id", "response_type", "redirect_uri", "scope", "state", "nonce", "code_challenge",
                            "code_challenge_method", "response_mode", "prompt",
                        ] + secret))
        }
    }

    @Test func `PAR-03: the browser carries the client, the reference and, but for FAPI 2, the response type`() throws {
        let pushed = try PushedAuthorization(parsing: answer(201, #"{"request_uri":"urn:x:1&2","expires_in":60}"#))
        #expect(pushed.expiresIn == 60)
        for (isPushRequired, key) in [(false, nil), (true, nil), (false, "a-key"), (true, "a-key")] {
            var authorization = try authorization()
            authorization.keyThumbprint = key
            let type = isPushRequired && key != nil ? "" : "&response_type=code"
            #expect(
                authorization.url(of: pushed, isPushRequired: isPushRequired)
                    == "https://id.example.org/authorize?tenant=1\(type)&client_id=me&request_uri=urn%3Ax%3A1%262")
        }
    }

    private func answer(_ status: Int, _ body: String) -> HTTPResponse {
        HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(body))
    }

    @Test(arguments: [
        (202, #"{"request_uri":"urn:x","expires_in":60}"#), (200, "{}"), (201, "{}"), (201, ""), (201, "[]"),
        (201, #"{"expires_in":60}"#),
        (201, #"{"request_uri":"","expires_in":60}"#), (201, #"{"request_uri":"a b","expires_in":60}"#),
        (201, #"{"request_uri":1,"expires_in":60}"#),
        (302, ""), (400, ""),
    ])
    func `PAR-02: anything but 201 or 200 with a reference is refused`(status: Int, body: String) throws {
        let error = #expect(throws: OAuthError.self) { try PushedAuthorization(parsing: answer(status, body)) }
        guard case .invalid(.pushedAuthorization, _)? = error else { throw Unexpected(error) }
    }

    @Test(arguments: [("90", 90), (#""90""#, 90), ("90.5", 90), ("0", 60), ("null", 60), (#""soon""#, 60)])
    func `a reference whose time cannot be read is used for a minute`(stated: String, seconds: Int) throws {
        let pushed = try PushedAuthorization(
            parsing: answer(201, #"{"request_uri":"urn:x","expires_in":\#(stated)}"#))
        #expect(pushed.expiresIn == seconds)
    }

    @Test func `200 counts as 201`() throws {
        let pushed = try PushedAuthorization(parsing: answer(200, #"{"request_uri":"urn:x","expires_in":60}"#))
        #expect(pushed.requestURI == "urn:x")
    }

    @Test func `a refusal of the client is told from a refusal of the request`() {
        for (status, body) in [
            (400, #"{"error":"unauthorized_client"}"#), (400, #"{"error":"invalid_client"}"#), (403, ""),
        ] {
            #expect(PushedAuthorization.rejectsClient(in: answer(status, body)))
        }
        for (status, body) in [
            (400, #"{"error":"invalid_request"}"#), (403, "no"), (500, ""), (404, ""), (401, ""),
            (401, #"{"error":"invalid_client"}"#),
        ] {
            #expect(!PushedAuthorization.rejectsClient(in: answer(status, body)))
        }
    }

    @Test func `PAR-07: refusals and being busy are told apart`() {
        #expect(throws: OAuthError.refused(.init(code: "invalid_client", message: nil, status: 401))) {
            try PushedAuthorization(parsing: answer(401, #"{"error":"invalid_client"}"#))
        }
        for status in [429, 500, 503] {
            #expect(throws: OAuthError.unavailable(.pushedAuthorization, status: status, retryAfter: nil)) {
                try PushedAuthorization(parsing: answer(status, "{}"))
            }
        }
    }
}
