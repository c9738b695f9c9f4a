import RingbackBase
import Testing

/// Keys for tests and for nothing else: everybody has them.
private enum ClientKeys {
    /// RFC 7515 appendix A.3.
    static let p256 = """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",\
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}
        """
    /// The same.
    static let p256PEM = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
        H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
        7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt
        -----END PRIVATE KEY-----
        """
    static let p256Half: JSON = [
        "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    ]
    /// RFC 8037 appendix A.1.
    static let ed25519 = """
        {"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",\
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
        """
}

extension Stage {
    fileprivate func requests(at endpoints: String...) async throws -> [JSON] {
        try await sandbox.log().filter { endpoints.contains($0["endpoint"]?.string ?? "") }
    }
}

extension JSON {
    fileprivate func parameter(_ name: String) -> String? { self["parameters"]?[name]?.string }
}

@Suite struct `A client's own key` {
    /// A client that proves itself with a key, of which the sandbox has the public half.
    private func play(
        _ key: String, _ half: JSON, _ lines: String = "", _ test: (Stage) async throws -> Void
    ) async throws {
        let configuration = """
            [accounts.work]
            issuer = "{sandbox}"
            client_id = "signs"
            client_key_file = "{stage}/key"
            \(lines)
            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try stage.write(key, to: "\(stage.directory)/key")
            try await stage.sandbox.control(["clients": [["id": "signs", "jwks": ["keys": [half]]]]])
            try await stage.startDaemon()
            try await test(stage)
        }
    }

    /// The head of an assertion of the key in PEM, as its first characters.
    private static let named = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0."

    @Test func `a client with a key signs a new assertion at exchange, refresh and revocation`() async throws {
        try await play(ClientKeys.p256PEM, ClientKeys.p256Half, "client_key_id = \"k1\"") { stage in
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.api("DELETE", "/v1/accounts/work/session").status == 200)
            try await stage.sandbox.wait("revocation", count: 2, what: "seen")
            let requests = try await stage.requests(at: "token", "revocation")
            #expect(requests.count == 4, "\(requests)")
            var assertions: Set<String> = []
            for request in requests {
                #expect(request["status"]?.integer == 200, "\(request.text)")
                #expect(request.parameter("client_id") == "signs")
                #expect(
                    request.parameter("client_assertion_type")
                        == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
                #expect(request.parameter("client_secret") == nil && request["headers"]?["authorization"] == nil)
                let assertion = request.parameter("client_assertion") ?? ""
                #expect(assertion.hasPrefix(Self.named), "\(assertion)")
                assertions.insert(assertion)
            }
            #expect(assertions.count == 4)
        }
    }

    @Test func `a client key that was replaced on disk is used at once`() async throws {
        try await play(ClientKeys.p256, ClientKeys.p256Half) { stage in
            try await stage.signIn()
            try stage.write(ClientKeys.ed25519, to: "\(stage.directory)/key")
            let refused = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 422)
            #expect(refused["provider_code"]?.string == "invalid_client", "\(refused)")
            #expect(try await stage.account()["state"]?.string == "authenticated")
            try stage.write(ClientKeys.p256, to: "\(stage.directory)/key")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
        }
    }

    @Test func `a broken client key is named before a browser opens`() async throws {
        try await play(ClientKeys.p256, ClientKeys.p256Half) { stage in
            try stage.write("hush-no-key", to: "\(stage.directory)/key")
            let answer = try await stage.api(
                "POST", "/v1/accounts/work/sign-in", status: 400, code: "invalid_configuration")
            #expect(answer["detail"]?.string?.contains("client_key_file") == true, "\(answer)")
            #expect(!answer.text.contains("hush"))
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            #expect(try await stage.api("GET", "/v1/status")["listeners"]?.array == [])
            try await stage.ringback("config", "check", status: 78, says: "client_key_file")
        }
    }
}

@Suite struct `A request that is pushed` {
    @Test func `PAR-03 PAR-05: a pushed request leaves only its reference to the browser`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control(["pushed_requests": "required"])
            let flow = try await stage.signIn()
            let url = try LocalURL(flow.authorizationURL)
            #expect(url.parameters.map(\.name) == ["response_type", "client_id", "request_uri"], "\(url)")
            let pushed = try #require(try await stage.requests(at: "par").first)
            #expect(pushed.parameter("redirect_uri") == flow.redirectURI)
            #expect(pushed.parameter("code_challenge_method") == "S256" && pushed.parameter("state") != nil)
            #expect(pushed.parameter("client_id") == "ringback-demo" && pushed.parameter("request_uri") == nil)
            let opened = try #require(try await stage.requests(at: "authorize").first)
            #expect(opened.parameter("state") == nil && opened.parameter("code_challenge") == nil, "\(opened.text)")
            #expect(try await stage.token() != nil)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.requests(at: "par").count == 1)
        }
    }

    @Test func `a request that cannot be pushed ends the sign-in before a browser opens`() async throws {
        try await Stage.play { stage in
            let fault: JSON = ["endpoint": "par", "kind": "error", "error": "invalid_request"]
            try await stage.sandbox.control(["pushed_requests": "required", "faults": [fault]])
            let login = try await stage.ringback("login", "work", environment: ["BROWSER": "false"])
            #expect(login.status != 0 && login.out.isEmpty, "\(login)")
            try await stage.api("POST", "/v1/accounts/work/sign-in", status: 422, code: "provider_error")
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            #expect(try await stage.sandbox.counters().requests("authorize") == 0)
            try await stage.sandbox.control(["clear": true])
            try await stage.signIn()
        }
    }
}
