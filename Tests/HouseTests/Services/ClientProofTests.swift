import RingbackBase
import Testing

extension JSON {
    fileprivate func parameter(_ name: String) -> String? { self["parameters"]?[name]?.string }
}

@Suite struct `A client's own key` {
    /// The key of RFC 7515 appendix A.3: for tests and for nothing else, since everybody has it.
    static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
        H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
        7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt
        -----END PRIVATE KEY-----
        """
    static let publicHalf: JSON = [
        "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    ]
    private static let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "signs"
        client_key_file = "{stage}/key"
        client_key_id = "k1"

        """
    /// The head of an assertion of the key, as its first characters.
    private static let named = "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0."

    @Test func `a client with a key signs a new assertion at exchange, refresh and revocation`() async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            try stage.write(Self.key, to: "\(stage.directory)/key")
            let keys: JSON = ["keys": [Self.publicHalf]]
            try await stage.sandbox.control(["clients": [["id": "signs", "jwks": keys]]])
            try await stage.startDaemon()
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.api("DELETE", "/v1/accounts/work/session").status == 200)
            try await stage.sandbox.wait("revocation", count: 2, what: "seen")
            let requests = try await stage.sandbox.log().filter {
                ["token", "revocation"].contains($0["endpoint"]?.string ?? "")
            }
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
}
