import RingbackBase
import Testing

@Suite struct `A flow` {
    @Test func `DELETE with all=true ends a sign-in for all who wait`() async throws {
        try await Stage.play { stage in
            let logins = try (0..<3).map { _ in try stage.start("ringback", ["login", "work", "--no-browser"]) }
            for login in logins { _ = try await login.line() }
            let id = try await stage.api("GET", "/v1/flows")["flows"]?.array?.first?["id"]?.string ?? ""
            let answer = try await stage.api("DELETE", "/v1/flows/\(id)?all=true")
            #expect(answer["status"]?.string == "cancelled")
            for login in logins {
                let ended = try await login.end().expect(4)
                #expect(ended.lines.count == 1, "\(ended)")
            }
        }
    }

    /// ADV-17.
    @Test func `PR-13, NAT-10, NAT-14: the authorization URL has PKCE, state and nonce of 256 bits`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin("work", ["params": ["login_hint": "bob@example.org"], "timeout": 60])
            let url = try LocalURL(flow.authorizationURL)
            #expect(url["code_challenge_method"] == "S256" && url["response_type"] == "code")
            #expect(url["login_hint"] == "bob%40example.org")
            for name in ["state", "code_challenge"] { #expect(url[name]?.utf8.count == 43, "\(name)") }
            // A digest: whoever is shown the ID token later may be shown what it was made of.
            let nonce = url["nonce"] ?? ""
            #expect(nonce.utf8.count == 64 && nonce.allSatisfy(\.isHexDigit))
            #expect(Set(url.parameters.map(\.name)).count == url.parameters.count)
            let other = try LocalURL(await stage.begin("home").authorizationURL)
            for name in ["state", "nonce", "code_challenge"] { #expect(url[name] != other[name]) }
            for name in ["state", "redirect_uri", "client_id", "code_challenge", "scope", "nonce"] {
                let body: JSON = .object(JSONObject([.init("params", .object(JSONObject([.init(name, "x")])))]))
                try await stage.api("POST", "/v1/accounts/work/sign-in", body, status: 400, code: "validation_failed")
            }
        }
    }
}
