import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Revocation` {
    @Test func `REV-01: the token and its kind are posted with the client's authentication`() {
        let request = RevocationRequest.build(
            token: Secret("r/1"), hint: .refreshToken, registration: ClientRegistration(clientID: "cli"),
            endpoint: "https://id.example.org/revoke")
        #expect(request.method == "POST")
        #expect(request.url == "https://id.example.org/revoke")
        #expect(request.body?.revealed() == "token=r%2F1&token_type_hint=refresh_token&client_id=cli")
    }

    @Test(
        arguments: [
            (200, "", .revoked), (200, "<html>", .revoked), (204, "", .revoked),
            (400, #"{"error":"unsupported_token_type"}"#, .unsupported),
            (400, #"{"error":"invalid_request"}"#, .unsupported),
            (400, #"{"error":"invalid_token"}"#, .revoked), (400, #"{"error":"invalid_grant"}"#, .revoked),
        ] as [(Int, String, RevocationOutcome)])
    func `REV-03, REV-05: an answer tells how far it went`(
        status: Int, body: String, outcome: RevocationOutcome
    ) throws {
        #expect(try RevocationOutcome(parsing: HTTPResponse(status: status, body: Secret(body))) == outcome)
    }

    @Test(arguments: [
        (503, "", OAuthError.unavailable(.revocation, status: 503, retryAfter: 9)),
        (429, "", .unavailable(.revocation, status: 429, retryAfter: 9)),
        (400, #"{"error":"temporarily_unavailable"}"#, .unavailable(.revocation, status: 400, retryAfter: 9)),
        (401, #"{"error":"invalid_client"}"#, .refused(.init(code: "invalid_client", message: nil, status: 401))),
        (302, "", .invalid(.revocation, reason: "a redirect, which is not followed (HTTP 302)")),
        (400, "{}", .invalid(.revocation, reason: "HTTP 400 without an OAuth error")),
        (404, "", .invalid(.revocation, reason: "an empty response (HTTP 404)")),
    ])
    func `anything else is an error`(status: Int, body: String, expected: OAuthError) {
        let response = HTTPResponse(status: status, fields: HTTPFields([("Retry-After", "9")]), body: Secret(body))
        #expect(throws: expected) { try RevocationOutcome(parsing: response) }
    }
}
