import RingbackBase
import Testing

@testable import OAuth

@Suite struct `A client registration request` {
    private func request(
        _ template: String = "http://127.0.0.1:{port}/callback/work", scopes: [String] = ["openid", "email"],
        _ authentication: ClientAuthentication = .none
    ) throws -> ClientRegistrationRequest {
        try ClientRegistrationRequest(redirectTemplate: template, scopes: scopes, authentication: authentication)
    }

    private func body(_ request: HTTPRequest) throws -> JSON { try JSON(parsing: request.body?.revealedBytes() ?? []) }

    @Test func `DCR-01, NAT-36: says what a native app is, and nothing else`() throws {
        let message = try request().request(to: "https://id.example.org/register")
        #expect(message.method == "POST" && message.url == "https://id.example.org/register")
        #expect(message.fields["Content-Type"] == "application/json" && message.authorization == nil)
        // Half an answer may hold what the registration is managed with.
        #expect(message.keepsPartialBody)
        #expect(
            try body(message) == [
                "client_name": "Ringback", "application_type": "native",
                "redirect_uris": ["http://127.0.0.1/callback/work"],
                "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
                "token_endpoint_auth_method": "none", "scope": "openid email",
            ])
        #expect(try body(request(scopes: []).request(to: "https://id.example.org"))["scope"] == nil)
    }

    @Test func `DCR-04: carries an initial access token in its header alone`() throws {
        let message = try request().request(to: "https://id.example.org/r", initialAccessToken: Secret("hush-hush"))
        #expect(message.authorization == Secret("Bearer hush-hush"))
        #expect(message.body?.revealed().contains("hush") == false && !message.url.contains("hush"))
    }

    @Test(arguments: [
        ("http://127.0.0.1:{port}/callback/work", "http://127.0.0.1/callback/work"),
        ("http://127.0.0.1:0/c", "http://127.0.0.1/c"), ("http://[::1]:{port}/c", "http://[::1]/c"),
        ("http://localhost:{port}", "http://localhost"), ("http://127.0.0.1:8400/c", "http://127.0.0.1:8400/c"),
        ("https://app.example.org/done?x=1", "https://app.example.org/done?x=1"),
        ("org.example.app:/callback", "org.example.app:/callback"),
    ])
    func `OIDF-21: registers the redirect URI that sign-ins will use, without a port where any is meant`(
        template: String, registered: String
    ) throws {
        #expect(try request(template).redirectURIs == [registered])
    }

    @Test(arguments: [
        "http://id.example.org:8400/c", "http://127.0.0.2:1/c", "http://127.0.0.1/c", "http://127.0.0.1:{port}/c#f",
        "https://app.example.org/#f", "https://app.example.org:{port}/", "javascript:alert(1)", "nonsense", "",
        "http://127.0.0.1:{port}x/c", "http://127.0.0.1:{port}/c?q=1", "http://user@127.0.0.1:1/c",
    ])
    func `OIDF-21: refuses a redirect URI that no native app may have`(template: String) {
        #expect(throws: OAuthError.self) { try request(template) }
    }

    @Test func `a client with a key of its own is not registered`() {
        #expect(throws: OAuthError.self) { try request("http://127.0.0.1:1/c", .privateKeyJWT) }
    }

    @Test(
        arguments: [
            (nil, ClientAuthentication.none), (["none", "client_secret_basic"], ClientAuthentication.none),
            (["client_secret_post", "client_secret_basic"], .clientSecretBasic),
            (["private_key_jwt", "client_secret_post"], .clientSecretPost), (["private_key_jwt"], nil), ([], nil),
        ] as [([String]?, ClientAuthentication?)])
    func `asks to be a public client where that is taken, else for a secret`(
        offered: [String]?, chosen: ClientAuthentication?
    ) throws {
        var metadata = try ProviderMetadata(
            authorizationEndpoint: "https://id.example.org/a", tokenEndpoint: "https://id.example.org/t")
        metadata.tokenEndpointAuthenticationMethods = offered
        #expect(metadata.registrableAuthentication == chosen)
    }
}
