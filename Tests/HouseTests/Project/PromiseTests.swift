// What the documents promise, and what they say is not there.

import Testing

@Suite struct `SECURITY.md` {
    @Test func `SK-05: the README says it on its first screen`() throws {
        let first = try Document(path: "README.md").text.split(separator: "\n", omittingEmptySubsequences: false)
            .prefix(42)
        let text = first.joined(separator: " ")
        #expect(text.contains("any program that runs as your user can get any token from Ringback"))
        #expect(text.contains("SECURITY.md"))
    }
}

@Suite struct `What Ringback does not have` {
    private static let work = """
        [accounts.work]
        issuer = "https://id.example.org"
        client_id = "ringback"

        """

    /// A line of a configuration that asks for it, and what `config check` says of it.
    private static let lines = [
        ("client_authentication = \"tls_client_auth\"", "client_authentication"),
        ("client_authentication = \"self_signed_tls_client_auth\"", "client_authentication"),
        ("tls_client_certificate = \"/etc/c.pem\"", "unknown key"),
        ("dpop = true", "unknown key"),
        ("response_mode = \"jwt\"", "response_mode"), ("response_mode = \"query.jwt\"", "response_mode"),
        ("response_mode = \"fragment\"", "response_mode"), ("response_type = \"id_token token\"", "unknown key"),
        ("authorization_params = { request = \"eyJ\" }", "request"),
        ("authorization_params = { request_uri = \"https://app.example.org/r.jwt\" }", "request_uri"),
        ("authorization_params = { response_type = \"token\" }", "response_type"),
        ("grant = \"password\"", "grant"), ("grant = \"urn:openid:params:grant-type:ciba\"", "grant"),
        ("initiate_login_uri = \"http://127.0.0.1/\"", "unknown key"),
        ("backchannel_logout_uri = \"http://127.0.0.1/\"", "unknown key"),
    ]

    @Test(arguments: lines)
    func `DPOP-01, MTLS-01, JAR-01, CIBA-01: is refused with its line when a configuration asks for it`(
        line: String, words: String
    ) async throws {
        try await Stage.play(Self.work + line + "\n", startsDaemon: false) { stage in
            let check = try await stage.ringback("config", "check")
            #expect(check.status == 78 && check.out.isEmpty, "\(check)")
            #expect(check.err.contains("\(stage.configuration):4") && check.err.contains(words), "\(check)")
        }
    }

    @Test func `is listed in the documentation of the configuration`() throws {
        let text = try Document(path: "docs/configuration.md").text
        let section = try #require(text.split(separator: "## Not supported").last)
        for feature in [
            "DPoP", "mutual TLS", "JAR", "JARM", "CIBA", "password grant", "JWE", "back-channel", "initiate_login_uri",
            "WebFinger",
        ] {
            #expect(section.contains(feature), "\(feature)")
        }
    }
}
