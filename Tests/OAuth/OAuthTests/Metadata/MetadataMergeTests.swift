import Cryptography
import RingbackBase
import Testing

@testable import OAuth

private let issuer = "https://id.example.org"

private func metadata(_ more: String = "", token: String = "/token", issuer: String = issuer) throws -> ProviderMetadata
{
    let json = """
        {"issuer":"\(issuer)","authorization_endpoint":"https://id.example.org/authorize",\
        "token_endpoint":"https://id.example.org\(token)"\(more)}
        """
    return try ProviderMetadata(parsing: HTTPResponse(status: 200, body: Secret(json)), issuer: issuer)
}

@Suite struct `Merged metadata` {
    @Test func `what one place lacks the other fills in`() throws {
        let first = try metadata(#","jwks_uri":"https://id.example.org/keys","scopes_supported":["openid"]"#)
        let second = try metadata(
            """
            ,"revocation_endpoint":"https://id.example.org/revoke","userinfo_endpoint":"https://id.example.org/me",\
            "device_authorization_endpoint":"https://id.example.org/device","registration_endpoint":\
            "https://id.example.org/register","end_session_endpoint":"https://id.example.org/logout",\
            "pushed_authorization_request_endpoint":"https://id.example.org/par",\
            "code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["none"],\
            "id_token_signing_alg_values_supported":["ES256"],"userinfo_signing_alg_values_supported":["PS256"]
            """)
        #expect(first.isWorthCompleting)
        let whole = first.completed(by: second)
        #expect(!whole.isWorthCompleting)
        #expect(whole.jwksURI == first.jwksURI)
        #expect(whole.scopesSupported == ["openid"])
        #expect(whole.revocationEndpoint == second.revocationEndpoint)
        #expect(whole.userinfoEndpoint == second.userinfoEndpoint)
        #expect(whole.deviceAuthorizationEndpoint == second.deviceAuthorizationEndpoint)
        #expect(whole.registrationEndpoint == second.registrationEndpoint)
        #expect(whole.endSessionEndpoint == second.endSessionEndpoint)
        #expect(whole.pushedAuthorizationRequestEndpoint == second.pushedAuthorizationRequestEndpoint)
        #expect(whole.codeChallengeMethods == ["S256"])
        #expect(whole.tokenEndpointAuthenticationMethods == ["none"])
        #expect(whole.allowedIDTokenAlgorithms == [.es256])
        #expect(whole.allowedUserinfoAlgorithms == [.ps256])
        // Either order knows the same.
        #expect(second.completed(by: first) == whole)
    }

    @Test func `what the first place says stands`() throws {
        let first = try metadata(
            #","revocation_endpoint":"https://id.example.org/one","id_token_signing_alg_values_supported":["ES256"]"#)
        let second = try metadata(
            #","revocation_endpoint":"https://id.example.org/two","id_token_signing_alg_values_supported":["RS256"]"#)
        let whole = first.completed(by: second)
        #expect(whole.revocationEndpoint == first.revocationEndpoint)
        #expect(whole.allowedIDTokenAlgorithms == [.es256])
    }

    @Test func `a promise or a demand counts wherever it stands`() throws {
        let plain = try metadata()
        let strict = try metadata(
            """
            ,"authorization_response_iss_parameter_supported":true,"require_pushed_authorization_requests":true
            """)
        for whole in [plain.completed(by: strict), strict.completed(by: plain)] {
            #expect(whole.supportsIssuerInResponse && whole.requiresPushedAuthorization)
        }
    }

    @Test func `nothing is taken from another server's document`() throws {
        let first = try metadata()
        let revocation = #","revocation_endpoint":"https://id.example.org/revoke""#
        #expect(first.completed(by: try metadata(revocation, token: "/other")) == first)
        #expect(first.completed(by: try metadata(revocation, issuer: "https://id.example.org/")) == first)
        let byHand = try ProviderMetadata(
            authorizationEndpoint: first.authorizationEndpoint, tokenEndpoint: first.tokenEndpoint)
        #expect(byHand.completed(by: try metadata(revocation)) == byHand)
    }

    @Test(arguments: [
        (#"["RS256","ES256"]"#, [SignatureAlgorithm.rs256, .es256]), (#"["Ed25519"]"#, [.edDSA]),
        (#"["none","HS256"]"#, []),
        ("[]", []), ("null", [.rs256]),
    ])
    func `OIDF-08: what is not agreed is not allowed, and nothing said is RS256`(
        list: String, algorithms: [SignatureAlgorithm]
    ) throws {
        let stated = try metadata(#","id_token_signing_alg_values_supported":\#(list)"#)
        #expect(stated.allowedIDTokenAlgorithms == Set(algorithms))
        #expect(stated.allowedUserinfoAlgorithms == Set(algorithms))
    }

    @Test func `MD-09: signed metadata are not looked at, and nothing is sent to aliases for mutual TLS`() throws {
        #expect(try metadata(#","signed_metadata":"e30.e30.""#) == metadata())
        let stated = try metadata(#","mtls_endpoint_aliases":{"token_endpoint":"https://mtls.example/token"}"#)
        #expect(try stated.tokenEndpoint == metadata().tokenEndpoint)
    }

    @Test(arguments: ["[1]", "{}", "7"]) func `a list that is only shown refuses no provider`(
        list: String
    ) throws {
        #expect(try metadata(#","scopes_supported":\#(list)"#).scopesSupported == nil)
    }

    @Test(arguments: [
        "https://ip6-localhost/t", "https://ip6-loopback:8443/t", "https://localhost.localdomain/t",
        "https://a.LOCALHOST./t",
        "https://localhost4/t", "https://192.168.1.1/t", "https://172.16.0.1/t", "https://100.64.0.1/t",
        "https://0.0.0.0/t",
        "https://[::ffff:127.0.0.1]/t", "https://[fd00::1]/t", "https://[::]/t", "https://0/t", "https://0177.1/t",
        "https://1.1.1.1/t", "https://127.0.0.1%2eexample/t",
    ])
    func `PR-04, MD-05: names and notations of addresses inside are not used`(url: String) throws {
        let metadata = try metadata(#","jwks_uri":"\#(url)""#)
        #expect(metadata.jwksURI == nil && metadata.unusableMembers.count == 1)
    }

    @Test(arguments: ["https://localhost.example.org/t", "https://10.example/t", "https://keys.example.org:8443/t?x=1"])
    func `MD-05: names that only look so are not`(url: String) throws {
        #expect(try metadata(#","jwks_uri":"\#(url)""#).jwksURI == url)
    }
}
