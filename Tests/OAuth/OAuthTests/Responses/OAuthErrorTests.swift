import RingbackBase
import Testing

@testable import OAuth

@Suite struct `OAuth error` {
    @Test(arguments: [
        ("invalid_grant", 200, true), ("invalid_grant", 400, true), ("invalid_grant", 401, true),
        ("invalid_grant", 403, true), ("invalid_grant", 0, false), ("invalid_grant", 404, false),
        ("invalid_grant", 418, false), ("invalid_client", 400, false), ("Invalid_Grant", 400, false),
        ("invalid_grant ", 400, false), ("", 400, false),
    ])
    func `only invalid_grant with a status of token endpoints ends a grant`(code: String, status: Int, ends: Bool) {
        #expect(OAuthError.ErrorResponse(code: code, message: nil, status: status).endsGrant == ends)
    }

    private func response(_ status: Int, _ body: String, _ type: String = "application/json") -> HTTPResponse {
        HTTPResponse(status: status, fields: HTTPFields([("Content-Type", type)]), body: Secret(body))
    }

    @Test(
        arguments: [
            (
                #"{"error":"invalid_grant","error_description":"AADSTS700082: expired.\r\nTrace ID: 1"}"#,
                "AADSTS700082: expired. Trace ID: 1"
            ),
            (#"{"message":"Token revoked"}"#, "Token revoked"), (#"{"msg":"no"}"#, "no"),
            (#"{"detail":"client not found"}"#, "client not found"),
            (#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "field required"),
            (#"{"errorCode":"E1","errorSummary":"The token is gone"}"#, "The token is gone"),
            (#"{"errors":[{"message":"first"},{"message":"second"}]}"#, "first"), (#"{"errors":["plain"]}"#, "plain"),
            (#"{"error":{"code":7,"message":"nested"}}"#, "nested"), (#"{"error_description":"alone"}"#, "alone"),
            (#"{"error":"x","error_description":"","message":"behind"}"#, "behind"),
            (
                #"{"message":"  Zugriff\tverweigert — Größe, срок\u2028истёк \u202e\u0007\u200b"}"#,
                "Zugriff verweigert — Größe, срок истёк"
            ),
            ("{}", nil), ("<html>", nil), (#"{"message":{"a":1}}"#, nil),
        ] as [(String, String?)])
    func `what a server says for people is found in every usual member, and is one line of letters`(
        body: String, text: String?
    ) {
        #expect(OAuthError.statedText(in: response(400, body)) == text)
    }

    @Test func `a text of a failing server without an OAuth error is passed on`() {
        let error = OAuthError.ErrorResponse(code: OAuthError.unspecified, message: "hook failed", status: 500)
        #expect(throws: OAuthError.failing(error, retryAfter: nil)) {
            _ = try TokenResponse(reading: response(500, #"{"message":"hook failed"}"#))
        }
        #expect(throws: OAuthError.unavailable(.token, status: 500, retryAfter: nil)) {
            _ = try TokenResponse(reading: response(500, "{}"))
        }
    }

    @Test func `a response above the limit is not called truncated`() {
        var large = response(200, #"{"access_token":"#)
        large.truncation = .tooLarge(host: "id.example")
        #expect(
            throws: OAuthError.invalid(.token, reason: "the response is larger than Ringback accepts")
        ) { _ = try TokenResponse(reading: large) }
    }

    @Test(arguments: [
        ("Client not found", true), ("client_not_found: unknown", true), ("Invalid client_id", true),
        ("The client does not exist", true), ("Unknown OAuth client", true), ("client abc was not found", true),
        ("client_id is invalid", true), ("No such client", true), ("Could not find client", true),
        ("The client application is not registered", true), ("refresh_token is invalid", false),
        ("The refresh token was not found for this client", false), ("Client is not allowed to use this scope", false),
        ("client secret has been rotated", false), ("code not found for client", false), ("", false),
    ])
    func `a text says that the client is unknown, or does not`(text: String, isSaid: Bool) {
        #expect(OAuthError.saysClientIsUnknown(text) == isSaid)
    }

    @Test func `an error page or redirect of the authorization endpoint rejects the client, a sign-in page does not`() {
        for status in [400, 401] { #expect(OAuthError.rejectsAuthorization(in: response(status, "<p>", "text/html"))) }
        for status in [200, 403, 404, 405, 429, 500] {
            #expect(!OAuthError.rejectsAuthorization(in: response(status, "<p>unknown client", "text/html")))
        }
        #expect(OAuthError.rejectsAuthorization(in: response(404, #"{"detail":"client not found"}"#)))
        for (location, isRejected) in [
            ("https://id.example/login?next=x", false), ("https://id.example/error?error=invalid_client", true),
            ("https://id.example/oops?error_description=Unknown+client#x", true),
            ("http://127.0.0.1/callback/work?error=login_required", false),
        ] {
            var redirect = response(302, "")
            redirect.fields.set("Location", location)
            #expect(OAuthError.rejectsAuthorization(in: redirect) == isRejected, "\(location)")
        }
    }
}
