import RingbackBase
import Testing

/// Clients that the provider registers (RFC 7591), from the command line to the vault.
@Suite struct `account add --register` {
    func add(_ stage: Stage, _ more: [String] = [], stdin: String? = nil) async throws -> Output {
        try await stage.run(
            "ringback", ["account", "add", "play", "--issuer", stage.sandbox.origin, "--register"] + more, stdin: stdin)
    }

    func asked(_ stage: Stage) async throws -> JSON {
        let request = try await stage.sandbox.log().last { $0["endpoint"]?.string == "registration" }
        return try #require(request?["document"])
    }

    /// What the sandbox gives with a registration and no file or output may show.
    private func secrets(in text: String) -> [String] {
        let words = text.split { !($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
        return words.filter { ($0.hasPrefix("reg-") || $0.hasPrefix("secret-")) && $0.count > 30 }.map(String.init)
    }

    func expectSealed(_ stage: Stage, _ outputs: Output...) {
        for output in outputs { #expect(secrets(in: output.out + output.err).isEmpty, "\(output)") }
        for name in FileTree.names(in: "\(stage.state)/vault") {
            let text = FileTree.text(of: "\(stage.state)/vault/\(name)") ?? ""
            #expect(secrets(in: text).isEmpty, "\(name)")
        }
        for file in ["\(stage.dropIns)/play.toml", "\(stage.state)/audit.jsonl"] {
            #expect(secrets(in: FileTree.text(of: file) ?? "").isEmpty, "\(file)")
        }
    }

    @Test func `DCR-01: account add --register registers a public client, which signs in`() async throws {
        try await Stage.play { stage in
            let added = try await add(stage).expect(0)
            let document = try await asked(stage)
            #expect(document["application_type"] == "native" && document["client_name"] == "Ringback")
            // With its port: some providers compare it exactly.
            let place = try #require(document["redirect_uris"]?.array?.first?.string)
            #expect(place.hasPrefix("http://127.0.0.1:") && place.hasSuffix("/callback/play"))
            #expect(document["grant_types"] == ["authorization_code", "refresh_token"])
            #expect(document["token_endpoint_auth_method"] == "none")
            #expect(document["scope"] == "openid email offline_access")
            #expect(added.out.contains(place) && added.out.contains("Registered the client"))
            let file = try #require(FileTree.text(of: "\(stage.dropIns)/play.toml"))
            #expect(
                file.contains("client_id = \"client-") && file.contains("client_authentication = \"none\""), "\(file)")
            #expect(file.contains("redirect_uri = \"\(place)\"") && !file.contains("client_secret"), "\(file)")
            #expect(FileTree.names(in: "\(stage.state)/vault").contains { $0.hasSuffix(".registration") })
            let flow = try await stage.signIn("play")
            let port = place.dropFirst("http://127.0.0.1:".count).prefix { $0.isNumber }
            #expect(flow.authorizationURL.contains("127.0.0.1%3A\(port)%2F"), "\(flow)")
            #expect(try await stage.token("play") != nil)
            expectSealed(stage, added)
            let audit = try await stage.ringback("audit", "--json")
            #expect(audit.out.contains("client_registered"), "\(audit)")
        }
    }

    private func management(_ stage: Stage) async throws -> [String] {
        try await stage.sandbox.log().filter { $0["endpoint"]?.string == "client_configuration" }
            .compactMap { $0["method"]?.string }
    }

    /// The client's secret has ended when it comes.
    private func addExpired(_ stage: Stage) async throws {
        try await stage.sandbox.control([
            "registered_authentication": "client_secret_basic", "registered_secret_lifetime": 0,
        ])
        try await add(stage).expect(0)
    }

    @Test func `DCR-05: an expired registered secret is renewed once (RFC 7592)`() async throws {
        try await Stage.play { stage in
            try await addExpired(stage)
            try await stage.sandbox.control(["registered_secret_lifetime": 3_600])
            try await stage.signIn("play")
            #expect(try await management(stage) == ["GET", "PUT"])
            // It is kept: neither a refresh nor another daemon asks again.
            #expect(try await stage.api("POST", "/v1/accounts/play/refresh", ["force": true]).status == 200)
            try await stage.stopDaemon()
            try await stage.startDaemon()
            #expect(try await stage.api("POST", "/v1/accounts/play/refresh", ["force": true]).status == 200)
            #expect(try await management(stage) == ["GET", "PUT"])
            // So is the token of the update, which replaced the first one.
            let client = try #require(
                FileTree.text(of: "\(stage.dropIns)/play.toml")?.split(separator: "\"").first {
                    $0.hasPrefix("client-")
                })
            FileTree.remove("\(stage.dropIns)/play.toml")
            try await stage.ringback("reload", status: 0)
            let deleted = try await stage.api(
                "DELETE", "/v1/registrations/play?issuer=\(stage.sandbox.origin)&client_id=\(client)", status: 200)
            #expect(deleted["deleted_at_provider"] == true, "\(deleted)")
            expectSealed(stage)
        }
    }

    @Test func `DCR-04: the initial access token is read from a descriptor`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control(["registration": "token"])
            try await add(stage).expect(1, out: "", says: "invalid_token", "--initial-access-token-fd")
            let wrong = try await add(stage, ["--initial-access-token-fd", "0"], stdin: "not-the-token-of-anyone\n")
                .expect(1)
            #expect(!wrong.err.contains("not-the-token"), "\(wrong)")
            #expect(FileTree.names(in: stage.dropIns) == [])
            try await add(stage, ["--initial-access-token-fd", "0"], stdin: "initial-access-token\n").expect(0)
            let request = try await stage.sandbox.log().last { $0["endpoint"]?.string == "registration" }
            #expect(request?["headers"]?["authorization"]?.string == "Bearer initial-access-token")
            #expect(try await add(stage, ["--initial-access-token-fd", "0"], stdin: "").status != 0)
        }
    }

    @Test func `DCR-03: a refused registration says what to do and leaves nothing`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control([
                "faults": [["endpoint": "registration", "kind": "error", "error": "invalid_redirect_uri"]]
            ])
            try await add(stage).expect(1, out: "", says: "--redirect-uri http://127.0.0.1:8400/callback/play")
            #expect(FileTree.names(in: stage.dropIns) == [])
            #expect(try await stage.sandbox.counters()["registrations"] == 0)
        }
    }
}
