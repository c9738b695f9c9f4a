import RingbackBase
import Testing

@testable import OAuth

private func request(
    endpoint: String = "https://id.example.org/authorize", scopes: [String] = ["openid", "email"],
    responseMode: ResponseMode? = nil, resource: String? = nil, additional: [(String, String)] = []
) throws(OAuthError) -> AuthorizationRequest {
    try AuthorizationRequest(
        endpoint: endpoint, clientID: "client & co", redirectURI: "http://127.0.0.1:8400/callback/work", scopes: scopes,
        state: Secret("s1"), nonce: Secret("n1"), codeChallenge: "ch", responseMode: responseMode, resource: resource,
        additionalParameters: additional)
}

@Suite struct `Authorization request` {
    @Test func `PR-13, NAT-02, NAT-10: the URL has every parameter once, escaped`() throws {
        let url = try request(
            responseMode: .formPost, resource: "https://api.example/", additional: [("prompt", "consent & more")]
        ).url()
        #expect(
            url == "https://id.example.org/authorize?response_type=code&client_id=client%20%26%20co"
                + "&redirect_uri=http%3A%2F%2F127.0.0.1%3A8400%2Fcallback%2Fwork&scope=openid%20email&state=s1&nonce=n1"
                + "&code_challenge=ch&code_challenge_method=S256&response_mode=form_post"
                + "&resource=https%3A%2F%2Fapi.example%2F&prompt=consent%20%26%20more")
        let pairs = try FormEncoding.parse(WebURL(parsing: url).query ?? "")
        #expect(Set(pairs.map(\.name)).count == pairs.count)
    }

    @Test(arguments: [
        (
            "https://id.example.org/authorize?p=policy%20x",
            "https://id.example.org/authorize?p=policy%20x&response_type="
        ),
        ("https://id.example.org/authorize?", "https://id.example.org/authorize?response_type="),
        ("https://id.example.org/authorize?p=1&", "https://id.example.org/authorize?p=1&response_type="),
        ("https://id.example.org", "https://id.example.org?response_type="),
    ])
    func `a query of the endpoint stays as it is`(endpoint: String, start: String) throws {
        #expect(try request(endpoint: endpoint).url().hasPrefix(start))
    }

    @Test func `a nonce is sent with openid only, no empty scope`() throws {
        let plain = try request(scopes: ["email"])
        #expect(plain.nonce == nil)
        #expect(!plain.url().contains("nonce="))
        #expect(try !request(scopes: []).url().contains("scope="))
    }

    @Test func `the reserved parameters are those of docs/api.md`() {
        #expect(
            AuthorizationRequest.reservedParameters == [
                "client_id", "client_secret", "redirect_uri", "redirect_to", "response_type", "response_mode", "state",
                "nonce", "scope", "scopes", "code_challenge", "code_challenge_method", "code_verifier", "request",
                "request_uri", "resource", "dpop_jkt",
            ])
    }

    @Test(arguments: AuthorizationRequest.reservedParameters.sorted() + [""])
    func `NAT-02: a reserved or nameless parameter is refused`(name: String) {
        #expect(throws: OAuthError.self) { try request(additional: [(name, "x")]) }
    }

    @Test func `a repeated parameter is refused`() {
        #expect(throws: OAuthError.self) { try request(additional: [("prompt", "a"), ("prompt", "b")]) }
    }

    @Test func `a max_age is a number of seconds, and known`() throws {
        func request(_ parameters: [(String, String)]) throws(OAuthError) -> AuthorizationRequest {
            try AuthorizationRequest(
                endpoint: "https://id.example.org/a", clientID: "cli", redirectURI: "app:/cb", scopes: ["openid"],
                state: Secret("s"), nonce: Secret("n"), codeChallenge: "c", additionalParameters: parameters)
        }
        #expect(try request([]).maxAge == nil)
        #expect(try request([("prompt", "login"), ("max_age", "3600")]).maxAge == 3_600)
        #expect(try request([("max_age", "0")]).maxAge == 0)
        for text in ["", "-1", "soon", "1.5", " 1"] {
            #expect(throws: OAuthError.self) { try request([("max_age", text)]) }
        }
    }
}
