import Testing

@Suite struct `SECURITY.md` {
    private func text(_ path: String) throws -> String {
        try Document(path: path).text.replacing("\n", with: " ")
    }

    @Test(arguments: [
        ("NAT-38", "A hostile program that is set as the default browser sees each sign-in."),
        ("SK-04", "A connection counts as the user's who opened it"),
        ("SK-05", "**Any program that runs as you may ask for any token.**"),
        ("SK-14", "**No request makes the daemon load code.**"),
        ("SK-19", "Memory may be swapped: use encrypted swap."),
    ])
    func `NAT-38, SK-05, SK-19: SECURITY.md says what is not promised`(row: String, sentence: String) throws {
        #expect(try text("SECURITY.md").contains(sentence), "\(row)")
    }

    @Test func `SK-05: the README says on its first screen that any program of the user can get a token`() throws {
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
        ("dpop = \"always\"", "dpop"),
        ("response_mode = \"jwt\"", "response_mode"), ("response_mode = \"query.jwt\"", "response_mode"),
        ("response_mode = \"fragment\"", "response_mode"), ("response_type = \"id_token token\"", "unknown key"),
        ("authorization_params = { request = \"eyJ\" }", "request"),
        ("authorization_params = { request_uri = \"https://app.example.org/r.jwt\" }", "request_uri"),
        ("authorization_params = { response_type = \"token\" }", "response_type"),
        ("grant = \"password\"", "grant"), ("grant = \"urn:openid:params:grant-type:ciba\"", "grant"),
        ("initiate_login_uri = \"http://127.0.0.1/\"", "unknown key"),
        ("backchannel_logout_uri = \"http://127.0.0.1/\"", "unknown key"),
    ]

    @Test func `DPOP-01, MTLS-01, JAR-01, CIBA-01: an unsupported setting is refused with its line`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (line, words) in Self.lines {
                try stage.write(configuration: Self.work + line + "\n")
                try await stage.ringback(
                    "config", "check", status: 78, out: "", says: "\(stage.configuration):4", words)
            }
        }
    }

    @Test func `docs/configuration.md lists what is not supported`() throws {
        let text = try Document(path: "docs/configuration.md").text
        let section = try #require(text.split(separator: "## Not supported").last)
        for feature in [
            "mutual TLS", "JAR", "JARM", "CIBA", "password grant", "JWE", "back-channel", "initiate_login_uri",
            "WebFinger",
        ] {
            #expect(section.contains(feature), "\(feature)")
        }
    }
}
