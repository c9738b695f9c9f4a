import Testing

@testable import Sandbox

@Suite struct `Redirect URIs` {
    @Test(arguments: [
        "http://127.0.0.1:1234/cb", "http://127.0.0.1/cb?flow=1", "http://[::1]:1234/", "http://localhost:80/cb",
        "http://127.0.0.1:1234",
    ])
    func `the demo client may use any http URI on loopback`(uri: String) {
        #expect(SandboxClient.demo.accepts(redirectURI: uri))
    }

    @Test(arguments: [
        "https://127.0.0.1/cb", "http://127.0.0.1.example.org/cb", "http://example.org/cb", "http://127.0.0.1/cb#x",
        "http://127.0.0.1@example.org/cb", "http://user@127.0.0.1/cb", "javascript:alert(1)", "swisscoin://auth", "",
        "http://127.0.0.1\\@example.org/", "http://0x7f000001/", "/cb", "http://127.0.0.1 /cb",
    ])
    func `nothing else is accepted`(uri: String) {
        #expect(!SandboxClient.demo.accepts(redirectURI: uri))
    }

    @Test func `registered URIs are compared byte for byte`() {
        let client = SandboxClient(
            id: "app", redirectURIs: ["swisscoin://auth-callback", "https://app.example.org/cb"], loopback: .exact)
        #expect(client.accepts(redirectURI: "swisscoin://auth-callback"))
        #expect(client.accepts(redirectURI: "https://app.example.org/cb"))
        for other in [
            "swisscoin://auth-callback/", "swisscoin://auth-callback?x=1", "SWISSCOIN://auth-callback",
            "https://app.example.org/cb/", "https://app.example.org:443/cb", "https://APP.example.org/cb",
            "https://app.example.org/CB", "http://127.0.0.1/cb",
        ] {
            #expect(!client.accepts(redirectURI: other), "\(other)")
        }
    }

    @Test func `the port of a registered loopback literal does not matter`() {
        let registered = ["http://127.0.0.1/callback", "http://[::1]:1/callback?a=1", "http://localhost:7/callback"]
        let client = SandboxClient(id: "app", redirectURIs: registered, loopback: .anyPort)
        for uri in ["http://127.0.0.1:5000/callback", "http://127.0.0.1/callback", "http://[::1]:9/callback?a=1"] {
            #expect(client.accepts(redirectURI: uri), "\(uri)")
        }
        for uri in [
            "http://127.0.0.1:5000/other", "http://127.0.0.2:5000/callback", "http://[::1]:9/callback",
            "http://127.0.0.1:5000/callback?a=1", "http://localhost:8/callback",
        ] {
            #expect(!client.accepts(redirectURI: uri), "\(uri)")
        }
        #expect(client.accepts(redirectURI: "http://localhost:7/callback"))
    }

    @Test func `a server that compares the port too can be played`() {
        let client = SandboxClient(id: "app", redirectURIs: ["http://127.0.0.1:8400/callback"], loopback: .exact)
        #expect(client.accepts(redirectURI: "http://127.0.0.1:8400/callback"))
        #expect(!client.accepts(redirectURI: "http://127.0.0.1:8401/callback"))
    }
}
