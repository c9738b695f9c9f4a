import RingbackBase
import Testing

@testable import OAuth

private func answer(_ body: String, status: Int = 200, type: String = "application/json") -> HTTPResponse {
    HTTPResponse(status: status, fields: HTTPFields([("Content-Type", type)]), body: Secret(body))
}

@Suite struct `Userinfo answers and requests` {
    @Test func `NAT-26, OIDF-27: the token goes into its field, never into the URL`() {
        let request = UserinfoRequest.build(endpoint: "https://id.example.org/userinfo", accessToken: Secret("a1"))
        #expect(request.method == "GET")
        #expect(request.url == "https://id.example.org/userinfo")
        #expect(request.authorization?.revealed() == "Bearer a1")
        #expect(request.fields["Accept"] == "application/json")
        #expect(request.body == nil)
    }

    @Test func `claims of the same subject are read`() throws {
        let userinfo = try Userinfo(parsing: answer(#"{"sub":"u1","email":"a@example.org"}"#), subject: "u1")
        #expect(userinfo.subject == "u1")
        #expect(userinfo.claims["email"]?.string == "a@example.org")
    }

    @Test func `without an ID token the subject may be anyone or unnamed`() throws {
        #expect(try Userinfo(parsing: answer(#"{"sub":"u2"}"#), subject: nil).subject == "u2")
        #expect(try Userinfo(parsing: answer(#"{"login":"octocat"}"#), subject: nil).subject == nil)
    }

    @Test(arguments: [
        #"{"sub":"u1invalid"}"#, #"{"sub":"U1"}"#, #"{"sub":""}"#, #"{"sub":null}"#, #"{"sub":1}"#, #"{"sub":["u1"]}"#,
        #"{"email":"a@example.org"}"#, #"{"sub":"u1","sub":"u1"}"#, #"["u1"]"#, "", "<html></html>",
    ])
    func `OIDF-11 and NAT-54: another subject or none is refused`(body: String) throws {
        let failure = #expect(throws: OAuthError.self) { try Userinfo(parsing: answer(body), subject: "u1") }
        guard case .invalid(.userinfo, _)? = failure else { throw Unexpected(failure) }
    }

    @Test func `subjects that only look equal are not`() {
        #expect(throws: OAuthError.self) { try Userinfo(parsing: answer(#"{"sub":"e\u0301"}"#), subject: "\u{E9}") }
    }

    @Test func `errors are told in our words and never end a grant`() {
        for (status, code) in [(401, "invalid_token"), (403, "insufficient_scope")] {
            let expected = OAuthError.refused(.init(code: code, message: nil, status: status))
            #expect(throws: expected) {
                try Userinfo(parsing: answer(#"{"error":"invalid_grant"}"#, status: status), subject: "u1")
            }
        }
        #expect(throws: OAuthError.unavailable(.userinfo, status: 503, retryAfter: nil)) {
            try Userinfo(parsing: answer("", status: 503), subject: "u1")
        }
        #expect(throws: OAuthError.invalid(.userinfo, reason: "a redirect, which is not followed (HTTP 302)")) {
            try Userinfo(parsing: answer("", status: 302), subject: "u1")
        }
        #expect(throws: OAuthError.invalid(.userinfo, reason: "HTTP 404")) {
            try Userinfo(parsing: answer("{}", status: 404), subject: nil)
        }
    }

    @Test(arguments: ["application/jwt", "Application/JWT; charset=utf-8"])
    func `OIDF-24: a signed answer is not read as a plain one`(type: String) {
        let reason = "a signed response, but an unsigned one was expected"
        #expect(throws: OAuthError.invalid(.userinfo, reason: reason)) {
            try Userinfo(parsing: answer("h.p.s", type: type), subject: "u1")
        }
    }
}
