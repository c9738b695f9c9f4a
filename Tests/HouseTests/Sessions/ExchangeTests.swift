import RingbackBase
import Testing

private struct Mistake: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let switches: JSON
    let code: String

    private init(_ name: String, _ switches: JSON, _ code: String = "invalid_provider_response") {
        testDescription = name
        self.switches = switches
        self.code = code
    }

    private init(fault kind: JSON, _ name: String, _ code: String = "invalid_provider_response") {
        var fault = kind.object ?? JSONObject()
        if fault["endpoint"] == nil { fault["endpoint"] = "token" }
        self.init(name, ["faults": [.object(fault)]], code)
    }

    private init(lie: String) {
        self.init(lie, ["perturb": [.string(lie)]])
    }

    /// What is told from the provider's answer itself.
    static let all =
        [
            Mistake(fault: ["kind": "html"], "a web page"),
            Mistake(fault: ["kind": "status", "status": 500], "500", "provider_unreachable"),
            Mistake(fault: ["kind": "status", "status": 503], "503", "provider_unreachable"),
            Mistake(fault: ["kind": "status", "status": 429, "retry_after": 7], "429", "rate_limited"),
            Mistake(fault: ["kind": "redirect", "to": "http://127.0.0.1:9/steal"], "a redirect"),
            Mistake(fault: ["kind": "invalid_json"], "broken JSON"),
            Mistake(fault: ["kind": "duplicate_members"], "members twice"),
            Mistake(fault: ["kind": "oversize"], "four megabytes"),
            Mistake(fault: ["kind": "truncated"], "half an answer"),
            Mistake(fault: ["kind": "empty", "status": 200], "nothing"),
            Mistake(fault: ["kind": "error", "error": "invalid_client", "status": 401], "a refusal", "provider_error"),
            Mistake(fault: ["endpoint": "jwks", "kind": "html"], "a web page in place of keys"),
            Mistake(
                fault: ["endpoint": "jwks", "kind": "status", "status": 500], "500 in place of keys",
                "provider_unreachable"),
        ]
        + [
            "token_no_access_token", "token_no_id_token", "token_wrong_type", "id_token_wrong_issuer",
            "id_token_no_subject", "id_token_wrong_audience", "id_token_extra_audience", "id_token_wrong_azp",
            "id_token_wrong_nonce", "id_token_no_nonce", "id_token_expired", "id_token_wrong_signature",
            "id_token_alg_none", "id_token_alg_hs256", "id_token_wrong_at_hash", "id_token_repeated_claim",
            "id_token_unknown_kid", "userinfo_wrong_subject",
        ].map { Mistake(lie: $0) }

    var exitStatus: Int32 { code == "provider_error" ? 1 : 5 }
}

@Suite struct `A provider's mistake at the exchange` {
    @Test func `PR-10, PR-24, NAT-34: an invalid token response fails the sign-in, and nothing is held`() async throws {
        try await Stage.play { stage in
            for mistake in Mistake.all {
                let login = try stage.start("ringback", ["login", "work", "--no-browser"])
                let callback = try await Browser.signIn(at: login.line())
                try await stage.sandbox.control(mistake.switches)
                let (answer, page) = try await Browser.deliver(callback)
                #expect(answer.status == 303 && answer.location == "/failed", "\(mistake): \(answer)")
                #expect(page?.status == 200)
                let ended = try await login.end().expect(mistake.exitStatus)
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

    @Test func `an unreachable or invalid provider starts no sign-in`() async throws {
        let configuration = """
            [accounts.gone]
            issuer = "http://127.0.0.1:1"
            client_id = "ringback-demo"

            [accounts.page]
            issuer = "{sandbox}/sandbox"
            client_id = "ringback-demo"

            [accounts.liar]
            issuer = "{sandbox}"
            client_id = "ringback-demo"

            """
        try await Stage.play(configuration) { stage in
            try await stage.sandbox.control(["perturb": ["metadata_wrong_issuer"]])
            let expected = [
                ("gone", 503, "provider_unreachable"), ("page", 502, "invalid_provider_response"),
                ("liar", 502, "invalid_provider_response"),
            ]
            for (account, status, code) in expected {
                try await stage.api("POST", "/v1/accounts/\(account)/sign-in", [:], status: status, code: code)
                try await stage.ringback("login", account, "--no-browser", status: 5, out: "")
            }
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            #expect(try await stage.api("GET", "/v1/status")["listeners"]?.array == [])
        }
    }
}
