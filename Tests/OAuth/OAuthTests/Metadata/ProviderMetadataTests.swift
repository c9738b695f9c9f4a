import RingbackBase
import Testing

@testable import OAuth

private let issuer = "https://id.example.org/realms/main"

private func document(
    issuer: String = issuer, without: Set<String> = [], _ members: [(String, String)] = []
) -> HTTPResponse {
    var all = [
        ("issuer", "\"\(issuer)\""), ("authorization_endpoint", #""https://id.example.org/authorize""#),
        ("token_endpoint", #""https://id.example.org/token""#), ("jwks_uri", #""https://keys.example.org/jwks""#),
    ]
    all.removeAll { member in without.contains(member.0) || members.contains { $0.0 == member.0 } }
    all += members
    let json = all.map { #""\#($0.0)":\#($0.1)"# }.joined(separator: ",")
    return HTTPResponse(status: 200, body: Secret("{\(json)}"))
}

private func isInvalid(_ body: () throws(OAuthError) -> ProviderMetadata) -> Bool {
    do throws(OAuthError) {
        _ = try body()
        return false
    } catch {
        if case .invalid(.metadata, _) = error { return true }
        return false
    }
}

@Suite struct `Discovery requests` {
    @Test(arguments: [
        (
            "https://h.example/a/b",
            [
                "https://h.example/a/b/.well-known/openid-configuration",
                "https://h.example/.well-known/oauth-authorization-server/a/b",
            ]
        ),
        (
            "https://h.example",
            [
                "https://h.example/.well-known/openid-configuration",
                "https://h.example/.well-known/oauth-authorization-server",
            ]
        ),
        (
            "https://h.example:8443/",
            [
                "https://h.example:8443/.well-known/openid-configuration",
                "https://h.example:8443/.well-known/oauth-authorization-server",
            ]
        ),
        (
            "http://127.0.0.1:5555/a/",
            [
                "http://127.0.0.1:5555/a/.well-known/openid-configuration",
                "http://127.0.0.1:5555/.well-known/oauth-authorization-server/a",
            ]
        ),
    ])
    func `MD-01: both places, OpenID Connect's first`(issuer: String, places: [String]) throws {
        let requests = try ProviderMetadata.discoveryRequests(issuer: issuer)
        #expect(requests.map(\.url) == places)
        for request in requests {
            #expect(request.method == "GET")
            #expect(request.limits.maxBody == 262_144)
            #expect(request.authorization == nil && request.body == nil)
        }
    }

    @Test(arguments: [
        "http://id.example.org", "ftp://id.example.org", "https://id.example.org?tenant=1", "https://id.example.org#x",
        "https://id.example.org?", "https://user@id.example.org", "id.example.org", "", "https://",
        "https://ид.example",
        "http://127.0.0.1.example.org", "http://10.0.0.1", "https://id.example.org/a b",
    ])
    func `MD-03, NAT-31: an issuer that is none is a mistake of the configuration`(issuer: String) throws {
        #expect(throws: OAuthError.self) { try ProviderMetadata.discoveryRequests(issuer: issuer) }
        let failure = #expect(throws: OAuthError.self) {
            try ProviderMetadata(parsing: document(issuer: issuer), issuer: issuer)
        }
        guard case .misconfigured? = failure else { throw Unexpected(failure) }
    }
}

@Suite struct `Provider metadata` {
    @Test func `OIDF-16, OIDF-17: a whole document is read`() throws {
        let metadata = try ProviderMetadata(
            parsing: document([
                ("userinfo_endpoint", #""https://id.example.org/userinfo""#),
                ("revocation_endpoint", #""https://id.example.org/revoke""#),
                ("end_session_endpoint", #""https://id.example.org/logout""#),
                ("device_authorization_endpoint", #""https://id.example.org/device""#),
                ("pushed_authorization_request_endpoint", #""https://id.example.org/par""#),
                ("require_pushed_authorization_requests", "true"),
                ("registration_endpoint", #""https://id.example.org/register""#),
                ("authorization_response_iss_parameter_supported", "true"),
                ("code_challenge_methods_supported", #"["plain","S256"]"#),
                ("token_endpoint_auth_methods_supported", #"["client_secret_post"]"#),
                ("id_token_signing_alg_values_supported", #"["RS256","ES256"]"#),
                ("scopes_supported", #"["openid","email"]"#), ("claims_supported", "{}"),
            ]), issuer: issuer)
        #expect(metadata.issuer == issuer)
        #expect(metadata.authorizationEndpoint == "https://id.example.org/authorize")
        #expect(metadata.tokenEndpoint == "https://id.example.org/token")
        #expect(metadata.jwksURI == "https://keys.example.org/jwks")
        #expect(metadata.userinfoEndpoint == "https://id.example.org/userinfo")
        #expect(metadata.revocationEndpoint == "https://id.example.org/revoke")
        #expect(metadata.endSessionEndpoint == "https://id.example.org/logout")
        #expect(metadata.deviceAuthorizationEndpoint == "https://id.example.org/device")
        #expect(metadata.pushedAuthorizationRequestEndpoint == "https://id.example.org/par")
        #expect(metadata.requiresPushedAuthorization)
        #expect(metadata.registrationEndpoint == "https://id.example.org/register")
        #expect(metadata.supportsIssuerInResponse)
        #expect(metadata.codeChallengeMethods == ["plain", "S256"])
        #expect(metadata.tokenEndpointAuthenticationMethods == ["client_secret_post"])
        #expect(metadata.idTokenSigningAlgorithms == ["RS256", "ES256"])
        #expect(metadata.scopesSupported == ["openid", "email"])
    }

    @Test func `what is left out or null is nil or false`() throws {
        let metadata = try ProviderMetadata(
            parsing: document(
                without: ["jwks_uri"], [("userinfo_endpoint", "null"), ("code_challenge_methods_supported", "null")]),
            issuer: issuer)
        #expect(metadata.jwksURI == nil && metadata.userinfoEndpoint == nil && metadata.revocationEndpoint == nil)
        #expect(metadata.codeChallengeMethods == nil && metadata.scopesSupported == nil)
        #expect(!metadata.supportsIssuerInResponse && !metadata.requiresPushedAuthorization)
    }

    @Test(arguments: [
        "https://id.example.org/realms/mainINVALID", "https://id.example.org/realms/main/",
        "https://ID.example.org/realms/main", "https://id.example.org:443/realms/main",
        "https://id.example.org/realms/Main", "https://id.example.org/realms/%6Dain", "",
        "http://id.example.org/realms/main",
    ])
    func `MD-02: another issuer is refused, byte for byte`(stated: String) throws {
        let error = #expect(throws: OAuthError.self) {
            try ProviderMetadata(parsing: document(issuer: stated), issuer: issuer)
        }
        guard case .invalid(.metadata, let reason)? = error else { throw Unexpected(error) }
        #expect(reason.contains("“\(stated)”") && reason.contains("“\(issuer)”"))
    }

    @Test(arguments: [
        ("https://id.example.org/realms/main/", "slash"), ("http://id.example.org/realms/main", "the other https"),
    ])
    func `a slash or a scheme that differs is named`(stated: String, word: String) {
        #expect(IssuerDifference.sentence(stated: stated, configured: issuer).contains(word))
        #expect(IssuerDifference.sentence(stated: issuer, configured: stated).contains(word))
    }

    @Test func `MD-02: letters that only look equal are not`() {
        // The Kelvin sign is canonically a K: equal as text, not as bytes.
        let stated = document([("issuer", #""https://id.example.org/\u212A""#)])
        #expect(
            isInvalid { () throws(OAuthError) in
                try ProviderMetadata(parsing: stated, issuer: "https://id.example.org/K")
            })
    }

    @Test(
        arguments: [
            (301, "", nil), (302, "{}", nil), (404, "", nil), (200, "", nil), (200, "<html></html>", nil),
            (200, "[]", nil),
            (200, "\u{FEFF}{}", nil), (200, "{}", nil), (204, "", nil), (401, "{}", nil),
        ] as [(Int, String, String?)])
    func `MD-04: only 200 with a JSON object is metadata`(status: Int, body: String, _: String?) {
        let response = HTTPResponse(status: status, body: Secret(body))
        #expect(isInvalid { () throws(OAuthError) in try ProviderMetadata(parsing: response, issuer: issuer) })
    }

    @Test func `PR-07, MD-04: a duplicate member is refused`() {
        let response = HTTPResponse(status: 200, body: Secret(#"{"issuer":"https://a.example","issuer":"\#(issuer)"}"#))
        #expect(isInvalid { () throws(OAuthError) in try ProviderMetadata(parsing: response, issuer: issuer) })
    }

    @Test(arguments: [408, 425, 429, 500, 502, 503, 511]) func `a status that means later says when`(status: Int) {
        let response = HTTPResponse(status: status, fields: HTTPFields([("retry-after", "12")]))
        #expect(throws: OAuthError.unavailable(.metadata, status: status, retryAfter: 12)) {
            try ProviderMetadata(parsing: response, issuer: issuer)
        }
    }

    @Test(
        arguments: [
            "token_endpoint", "authorization_endpoint", "jwks_uri", "userinfo_endpoint", "revocation_endpoint",
            "end_session_endpoint", "device_authorization_endpoint", "pushed_authorization_request_endpoint",
            "registration_endpoint",
        ],
        [
            #""http://id.example.org/x""#, #""file:///etc/passwd""#, #""gopher://id.example.org/x""#, #""/x""#, #""""#,
            #""https://user@id.example.org/x""#, #""https://id.example.org/x#y""#, #""http://169.254.169.254/x""#,
            #""https://169.254.169.254/x""#, #""https://127.0.0.1:22""#, #""http://127.0.0.1/x""#,
            #""https://10.0.0.1/x""#,
            #""https://localhost/x""#, #""https://a.localhost/x""#, #""https://[::1]/x""#, #""https://[fe80::1]/x""#,
            #""https://2130706433/x""#, #""https://0x7f000001/x""#, #""https://127.1/x""#, #""https://127.0.0.1./x""#,
            #""https://%6cocalhost/x""#, #""https://id.example.org/\nx""#, "1", "[]", "{}", "true",
        ])
    func `PR-01, PR-02, PR-04, MD-05: an endpoint that secrets must not be sent to is unused and named`(
        name: String, value: String
    ) throws {
        let document = document([(name, value)])
        guard name != "token_endpoint" else {
            let isRefused = isInvalid { () throws(OAuthError) in
                try ProviderMetadata(parsing: document, issuer: issuer)
            }
            #expect(isRefused)
            return
        }
        let metadata = try ProviderMetadata(parsing: document, issuer: issuer)
        let endpoints = [
            metadata.authorizationEndpoint, metadata.jwksURI, metadata.userinfoEndpoint, metadata.revocationEndpoint,
            metadata.endSessionEndpoint, metadata.deviceAuthorizationEndpoint,
            metadata.pushedAuthorizationRequestEndpoint, metadata.registrationEndpoint,
        ]
        let usable = ["https://id.example.org/authorize", "https://keys.example.org/jwks", ""]
        #expect(endpoints.allSatisfy { $0 == nil || usable.contains($0 ?? "") })
        #expect(metadata.tokenEndpoint == "https://id.example.org/token")
        #expect(metadata.unusableMembers.count == 1 && metadata.unusableMembers[0].hasPrefix("\(name) is "))
        if name == "authorization_endpoint" {
            #expect(throws: OAuthError.misconfigured(reason: metadata.unusableMembers[0])) {
                try metadata.checkAuthorizationRequests()
            }
        } else {
            try metadata.checkAuthorizationRequests()
        }
    }

    @Test func `MD-05: an issuer on loopback may name loopback, one at an address its own`() throws {
        let local = "http://127.0.0.1:5555"
        let response = document(
            issuer: local, without: ["jwks_uri"],
            [
                ("authorization_endpoint", #""http://localhost:5555/authorize""#),
                ("token_endpoint", #""http://127.0.0.1:5555/token""#),
            ])
        let metadata = try ProviderMetadata(parsing: response, issuer: local)
        #expect(metadata.tokenEndpoint == "http://127.0.0.1:5555/token")
        let private10 = "https://10.0.0.1/id"
        let own = document(issuer: private10, [("token_endpoint", #""https://10.0.0.1/token""#)])
        #expect(try ProviderMetadata(parsing: own, issuer: private10).tokenEndpoint == "https://10.0.0.1/token")
        let other = document(issuer: private10, [("token_endpoint", #""https://10.0.0.2/token""#)])
        #expect(isInvalid { () throws(OAuthError) in try ProviderMetadata(parsing: other, issuer: private10) })
    }

    @Test func `metadata need a token endpoint, and an authorization endpoint only for its requests`() throws {
        #expect(throws: OAuthError.invalid(.metadata, reason: "no token_endpoint")) {
            try ProviderMetadata(parsing: document(without: ["token_endpoint"]), issuer: issuer)
        }
        let metadata = try ProviderMetadata(parsing: document(without: ["authorization_endpoint"]), issuer: issuer)
        #expect(metadata.unusableMembers.isEmpty && metadata.isWorthCompleting)
        #expect(throws: OAuthError.self) { try metadata.checkAuthorizationRequests() }
        let whole = try ProviderMetadata(parsing: document(), issuer: issuer)
        #expect(metadata.completed(by: whole).authorizationEndpoint == whole.authorizationEndpoint)
    }

    @Test(arguments: ["[]", #"["plain"]"#, #"["s256"]"#])
    func `NAT-12: authorization requests to a provider without S256 are refused, and nothing else`(
        methods: String
    ) throws {
        let response = document([("code_challenge_methods_supported", methods)])
        let metadata = try ProviderMetadata(parsing: response, issuer: issuer)
        #expect(throws: OAuthError.misconfigured(reason: "the provider does not support S256 (PKCE)")) {
            try metadata.checkAuthorizationRequests()
        }
    }

    @Test(
        arguments: [
            (#""S256 plain""#, ["S256", "plain"]), ("[1]", nil), ("{}", nil), (#"["S256",null]"#, ["S256"]), ("7", nil),
        ] as [(String, [String]?)])
    func `a list of another type is read as far as it can be, and named`(value: String, texts: [String]?) throws {
        for name in ["code_challenge_methods_supported", "scopes_supported"] {
            let metadata = try ProviderMetadata(parsing: document([(name, value)]), issuer: issuer)
            #expect([metadata.codeChallengeMethods, metadata.scopesSupported].contains(texts))
            #expect(metadata.unusableMembers == ["\(name) is not a list of texts"])
            try metadata.checkAuthorizationRequests()
        }
    }

    @Test func `metadata by hand are checked like the rest`() throws {
        let metadata = try ProviderMetadata(
            authorizationEndpoint: "https://auth.example.org/authorize", tokenEndpoint: "http://localhost:8080/token")
        #expect(metadata.issuer == nil && !metadata.supportsIssuerInResponse)
        for endpoint in ["http://auth.example.org/token", "/token", "https://a@b/token", "https://b/#x"] {
            #expect(throws: OAuthError.self) {
                try ProviderMetadata(authorizationEndpoint: "https://auth.example.org/a", tokenEndpoint: endpoint)
            }
            #expect(throws: OAuthError.self) {
                try ProviderMetadata(
                    authorizationEndpoint: "https://auth.example.org/a", tokenEndpoint: "https://auth.example.org/t",
                    revocationEndpoint: endpoint)
            }
        }
    }
}
