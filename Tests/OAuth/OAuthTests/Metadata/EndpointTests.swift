import OAuth
import RingbackBase
import Testing

@Suite struct `The endpoints of an issuer` {
    private func metadata(_ more: JSONObject = [:]) throws -> ProviderMetadata {
        let members: JSONObject = [
            "issuer": "https://id.example", "token_endpoint": "https://id.example/oauth/token",
            "userinfo_endpoint": "https://id.example/oauth/me",
        ]
        let document = JSON.object(JSONObject(members.members + more.members)).serialized()
        return try ProviderMetadata(
            parsing: HTTPResponse(status: 200, body: Secret(bytes: document)), issuer: "https://id.example")
    }

    private func isEndpoint(_ url: String, _ metadata: ProviderMetadata) throws -> Bool {
        metadata.hasEndpoint(at: try WebURL(parsing: url))
    }

    @Test(arguments: [
        ("https://id.example/oauth/token", true), ("https://id.example:443/oauth//token/", true),
        ("HTTPS://ID.EXAMPLE/OAuth/%54oken;a=b?c=d", true), ("https://id.example/oauth/../oauth/token", true),
        ("https://id.example./oauth/token", true), ("https://id.example/oauth%2Ftoken", true),
        ("https://id.example/oauth/token.json", true), ("https://id.example/oauth/token/x;y", true),
        ("https://id.example/oauth/token.json;x/y.z", true),
        ("https://id.example/oauth/me", false), ("https://id.example/oauth/tokens", false),
        ("https://id.example/oauth", false), ("https://id.example/oauth/.token", false),
        // A path that servers read in different ways leads nowhere else than to its own server.
        ("https://api.example/projects/group%2Fproject", false),
        ("https://id.example/token", false), ("https://api.example/oauth/token", false),
        ("https://id.example:444/oauth/token", false),
    ]) func `are found in whatever spelling`(url: String, isFound: Bool) throws {
        #expect(try isEndpoint(url, try metadata()) == isFound)
    }

    @Test func `are all that the document calls so, and those for mutual TLS`() throws {
        let found = try metadata([
            "introspection_endpoint": "https://id.example/oauth/introspect",
            "backchannel_authentication_endpoint": "https://ciba.example/start",
            "mtls_endpoint_aliases": ["token_endpoint": "https://mtls.id.example/oauth/token"] as JSONObject,
        ])
        for url in [
            "https://id.example/oauth/introspect", "https://ciba.example/start", "https://mtls.id.example/oauth/token",
        ] {
            #expect(try isEndpoint(url, found), "\(url)")
            #expect(try isEndpoint(url, try metadata().completed(by: found)), "\(url)")
            #expect(try !isEndpoint(url, try metadata()), "\(url)")
        }
    }

    @Test func `at the root of a server are not all that it has`() throws {
        let found = try metadata(["introspection_endpoint": "https://api.example/"])
        #expect(try isEndpoint("https://api.example", found))
        #expect(try !isEndpoint("https://api.example/v1", found))
    }

    @Test func `of a server on this machine are found by all its names`() throws {
        let metadata = try ProviderMetadata(
            authorizationEndpoint: nil, tokenEndpoint: "http://127.0.0.1:8123/token",
            revocationEndpoint: "http://127.0.0.1:8123/revoke")
        for url in ["http://localhost:8123/token", "http://[::1]:8123/revoke", "http://127.0.0.2:8123/token"] {
            #expect(try isEndpoint(url, metadata), "\(url)")
        }
        #expect(try !isEndpoint("http://localhost:8124/token", metadata))
    }
}
