import RingbackBase
import Testing

@testable import OAuth

private func parameters(_ request: HTTPRequest) throws -> [String: String] {
    let pairs = try FormEncoding.parse(request.body?.revealedBytes() ?? [])
    return Dictionary(pairs.map { ($0.name, $0.value) }) { "\($0) and \($1)" }
}

@Suite struct `A request of a service` {
    private static let client = ClientRegistration(
        clientID: "build", authentication: .clientSecretPost, secret: Secret("hush"))
    private static let endpoint = "https://id.example/token"

    private func form(
        _ grant: ServiceGrantType, _ assertion: Assertion, scope: [String]? = nil, audience: String? = nil
    ) throws -> [String: String] {
        try parameters(
            #require(
                grant.request(
                    assertion, of: .jwt, scope: scope, audience: audience, resource: nil,
                    registration: ClientRegistration(clientID: ""), endpoint: Self.endpoint)))
    }

    @Test func `with client credentials names the client, its secret and what the token is for`() throws {
        let request = try #require(
            ServiceGrantType.clientCredentials.request(
                nil, of: .jwt, scope: ["a", "b"], audience: "https://api.example", resource: "urn:r",
                registration: Self.client, endpoint: Self.endpoint))
        #expect(request.method == "POST" && request.url == Self.endpoint)
        #expect(
            try parameters(request) == [
                "grant_type": "client_credentials", "scope": "a b", "audience": "https://api.example",
                "resource": "urn:r", "client_id": "build", "client_secret": "hush",
            ])
        let bare = try #require(
            ServiceGrantType.clientCredentials.request(
                nil, of: .jwt, scope: [], audience: nil, resource: nil, registration: Self.client,
                endpoint: Self.endpoint))
        #expect(try parameters(bare).keys.sorted() == ["client_id", "client_secret", "grant_type"])
    }

    @Test func `with an assertion needs no client at all`() throws {
        #expect(
            try form(.jwtBearer, Assertion(parsing: Secret("a.b.c\n"))) == [
                "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "a.b.c",
            ])
    }

    @Test func `self_issued_jwt sends a new assertion each time, which alone names the client`() throws {
        let endpoint = try ProviderMetadata(
            issuer: "https://id.example", authorizationEndpoint: "https://id.example/a", tokenEndpoint: Self.endpoint)
        let key = try ClientKey(parsing: Secret(TestJWK.p256))
        func form(_ issued: SelfIssuedAssertion, scope: [String]? = nil) throws -> (JSONObject, [String: String]) {
            let robot = ClientRegistration(
                clientID: "robot", authentication: .privateKeyJWT,
                assertion: try ClientAssertion(key: key, metadata: endpoint, now: 1_000))
            let request = ServiceGrantType.selfIssuedJWT.request(
                issued.signed(by: robot, scope: scope, endpoint: Self.endpoint), of: .jwt, scope: scope,
                audience: "api", resource: nil, registration: robot, endpoint: Self.endpoint)
            var form = try parameters(#require(request))
            let parts = (form.removeValue(forKey: "assertion") ?? "").split(separator: ".")
            try #require(parts.count == 3)
            return (try #require(JSON(parsing: Base64URL.decode(parts[1]) ?? []).object), form)
        }
        let (own, sent) = try form(SelfIssuedAssertion(), scope: ["a", "b"])
        #expect(
            sent == ["grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "scope": "a b", "audience": "api"])
        #expect(own["iss"] == "robot" && own["sub"] == "robot" && own["aud"] == .string(Self.endpoint))
        #expect(own["scope"] == "a b" && own["iat"] == 1_000 && own["exp"] == 1_060)
        let (other, _) = try form(SelfIssuedAssertion(subject: "ada", audience: "id.example"))
        #expect(other["iss"] == "robot" && other["sub"] == "ada" && other["aud"] == "id.example")
        #expect(other["scope"] == nil && other["jti"] != nil && other["jti"] != own["jti"])
    }

    @Test func `self_issued_jwt sends nothing without a key`() {
        let assertion = SelfIssuedAssertion().signed(by: Self.client, scope: nil, endpoint: Self.endpoint)
        let request = ServiceGrantType.selfIssuedJWT.request(
            assertion, of: .jwt, scope: nil, audience: nil, resource: nil, registration: Self.client,
            endpoint: Self.endpoint)
        #expect(assertion == nil && request == nil)
    }

    @Test func `with a SAML assertion sends its base64url, and needs no client at all`() throws {
        let assertion = try Assertion(samlIn: Secret("\u{FEFF}\n<a b=\"ü?>\">x</a>\n"))
        #expect(
            try form(.samlBearer, assertion, scope: ["read"]) == [
                "grant_type": "urn:ietf:params:oauth:grant-type:saml2-bearer", "scope": "read",
                "assertion": "PGEgYj0iw7w_PiI-eDwvYT4",
            ])
    }

    @Test(arguments: ["", " \n", "a.b.c", "<a", "a>", "<a>\u{0}</a>"])
    func `takes nothing for a SAML assertion that is no XML element`(text: String) {
        #expect(throws: OAuthError.self) { try Assertion(samlIn: Secret(text)) }
        #expect(throws: OAuthError.self) { try Assertion(samlIn: Secret(bytes: [0x3C, 0xFF, 0x3E])) }
    }

    @Test func `takes a SAML assertion of 48 KiB`() throws {
        let long = "<" + String(repeating: "x", count: 49_150) + ">"
        #expect(try Assertion(samlIn: Secret(long)).text.revealed().utf8.count == 65_536)
        #expect(throws: OAuthError.self) { try Assertion(samlIn: Secret("<x" + long.dropFirst())) }
    }

    @Test func `TX-01: for an exchange names subject token, its type, and the wanted access token`() throws {
        let assertion = try Assertion(parsing: Secret("a.b.c"))
        #expect(
            try form(.tokenExchange, assertion, scope: ["read"], audience: "//iam.example/pool") == [
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "a.b.c",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "requested_token_type": "urn:ietf:params:oauth:token-type:access_token", "scope": "read",
                "audience": "//iam.example/pool",
            ])
    }

    @Test(arguments: [
        ("access_token", "urn:ietf:params:oauth:token-type:access_token"),
        ("jwt", "urn:ietf:params:oauth:token-type:jwt"),
        ("urn:example:custom", "urn:example:custom"), ("https://id.example/t", "https://id.example/t"),
        ("bearer", nil), ("", nil), (":x", nil), ("urn:", nil), ("urn:a b", nil),
    ])
    func `knows token types by word and by URI`(text: String, uri: String?) {
        #expect(ExchangedTokenType(parsing: text)?.uri == uri)
    }

    @Test(arguments: ["", " \n", "a b", "a\nb", "ü", "a\u{7F}"])
    func `takes nothing for an assertion that is no token`(text: String) {
        #expect(throws: OAuthError.self) { try Assertion(parsing: Secret(text)) }
    }

    @Test func `takes a token of 64 KiB and the white space around it`() throws {
        let long = String(repeating: "x", count: 65_536)
        #expect(try Assertion(parsing: Secret(" \t\(long)\r\n\n")).text == Secret(long))
        #expect(throws: OAuthError.self) { try Assertion(parsing: Secret(long + "x")) }
    }
}

@Suite struct `An exchange's answer` {
    private func tokens(_ members: String) throws -> TokenSet {
        let body = #"{"access_token":"t","token_type":"Bearer"\#(members)}"#
        return try TokenResponse(
            reading: HTTPResponse(
                status: 200, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(body))
        ).tokenSet()
    }

    @Test(arguments: ["access_token", "jwt"])
    func `TX-02: is taken as an access token if it says so`(word: String) throws {
        let answer = try tokens(#","issued_token_type":"urn:ietf:params:oauth:token-type:\#(word)""#)
        try ExchangedTokenType.check(issued: answer)
        #expect(answer.issuedTokenType?.hasSuffix(word) == true)
    }

    @Test func `TX-02: is taken from a server that leaves the word out`() throws {
        try ExchangedTokenType.check(issued: try tokens(""))
    }

    @Test(arguments: ["refresh_token", "id_token", "saml2", "whatever"])
    func `TX-02: that is no access token is never one`(word: String) throws {
        let answer = try tokens(#","issued_token_type":"urn:ietf:params:oauth:token-type:\#(word)""#)
        #expect(throws: OAuthError.self) { try ExchangedTokenType.check(issued: answer) }
    }

    @Test func `TX-02: of the token type N_A is refused`() throws {
        #expect(throws: OAuthError.self) { try tokens(#","token_type":"N_A""#) }
        let response = HTTPResponse(
            status: 200, fields: HTTPFields([("Content-Type", "application/json")]),
            body: Secret(#"{"access_token":"t","token_type":"N_A"}"#))
        #expect(throws: OAuthError.invalid(.token, reason: "a token that is no access token (token_type N_A)")) {
            try TokenResponse(reading: response).tokenSet()
        }
    }
}
