import RingbackBase
import Testing

private typealias Mistake = (name: String, switches: JSON, code: String)

private func fault(_ endpoint: JSON, _ kind: JSON, status: JSON = 200) -> JSON {
    ["faults": [["endpoint": endpoint, "kind": kind, "error": "invalid_client", "status": status]]]
}

/// One for each way to a failure. What else is invalid is in the vectors of token responses and ID tokens.
private let mistakes: [Mistake] = [
    ("a web page", fault("token", "html"), "invalid_provider_response"),
    ("half an answer", fault("token", "truncated"), "invalid_provider_response"),
    ("503", fault("token", "status", status: 503), "provider_unreachable"),
    ("a refusal", fault("token", "error", status: 401), "provider_error"),
    ("500 in place of keys", fault("jwks", "status", status: 500), "provider_unreachable"),
    ("no access token", ["perturb": ["token_no_access_token"]], "invalid_provider_response"),
    ("another nonce", ["perturb": ["id_token_wrong_nonce"]], "invalid_provider_response"),
    ("a wrong signature", ["perturb": ["id_token_wrong_signature"]], "invalid_provider_response"),
    ("userinfo of another user", ["perturb": ["userinfo_wrong_subject"]], "invalid_provider_response"),
]

@Suite struct `A provider's mistake at the exchange` {
    @Test func `PR-10, PR-24, NAT-34: an invalid token response fails the sign-in, and nothing is held`() async throws {
        try await Stage.play { stage in
            for mistake in mistakes {
                let login = try stage.start("ringback", ["login", "work", "--no-browser"])
                let callback = try await Browser.signIn(at: login.line())
                try await stage.sandbox.control(mistake.switches)
                let (answer, page) = try await Browser.deliver(callback)
                #expect(answer.status == 303 && answer.location == "/failed", "\(mistake): \(answer)")
                #expect(page?.status == 200)
                let ended = try await login.end().expect(mistake.code == "provider_error" ? 1 : 5)
                #expect(ended.lines.count == 1, "\(mistake): \(ended)")
                let account = try await stage.account()
                #expect(account["error"]?["code"]?.string == mistake.code, "\(mistake): \(account.text)")
                try await stage.expectNothingHeld(error: mistake.code)
                let text = ended.err + account.text
                #expect(
                    !text.contains("at-") && !text.contains("rt-") && !text.contains("code-"), "\(mistake): \(text)")
                // Each stage has one set of keys; what was refused is not tried again.
                try await stage.sandbox.control(["clear": true])
            }
            try await stage.signIn()
        }
    }

    @Test func `after a 503 at the token endpoint the same code and verifier are sent once more`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let callback = try await Browser.signIn(at: flow.authorizationURL)
            let fault: JSON = ["endpoint": "token", "kind": "status", "status": 503, "count": 1]
            try await stage.sandbox.control(["faults": [fault]])
            let (answer, _) = try await Browser.deliver(callback)
            #expect(answer.location == "/done", "\(answer)")
            let requests = try await stage.sandbox.log().filter { $0["endpoint"]?.string == "token" }
            #expect(requests.count == 2, "\(requests)")
            #expect(requests.first?["parameters"] == requests.last?["parameters"])
            #expect(try await stage.token() != nil)
        }
    }
}
