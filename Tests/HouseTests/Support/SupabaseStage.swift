import RingbackBase
import Testing

extension Stage {
    static let project = """
        [accounts.app]
        provider = "supabase"
        url = "{sandbox}/supabase"
        api_key = "sb_publishable_sandbox"
        rpc = ["echo"]
        edge_functions = ["echo", "nothing", "say-hello", "fail"]

        """

    /// Plays at a project; what its dashboard would say stands under `settings`.
    static func playProject(
        _ settings: JSON = [:], configuration: String = project, _ test: (Stage) async throws -> Void
    ) async throws {
        try await play(configuration, sandboxArguments: ["--user", "alice", "--auto-approve", "alice"]) { stage in
            try await stage.setProject(settings)
            try await test(stage)
            try await stage.expectNoRefreshToken()
        }
    }

    /// The same with mira signed up, and so signed in.
    static func playSignedUp(
        _ settings: JSON = [:], configuration: String = project, _ test: (Stage) async throws -> Void
    ) async throws {
        try await playProject(settings, configuration: configuration) { stage in
            try await stage.signUp()
            try await test(stage)
        }
    }

    /// A project's refresh tokens have no mark of their own: those that were presented are looked for by their text.
    private func expectNoRefreshToken() async throws {
        let log = try await sandbox.log(issuer: "/supabase")
        let tokens = Set(log.compactMap { $0["document"]?["refresh_token"]?.string }.filter { $0.utf8.count >= 12 })
        guard !tokens.isEmpty else { return }
        let said = daemon?.errors.value.text ?? ""
        let places =
            FileTree.all(in: state).map { ($0, FileTree.text(of: $0) ?? "") } + [("what the daemon said", said)]
        for (place, text) in places { #expect(!tokens.contains { text.contains($0) }, "\(place)") }
    }

    /// Switches of the project's issuer.
    func switchProject(_ switches: JSON) async throws { try await sandbox.control(switches, issuer: "/supabase") }

    func setProject(_ settings: JSON) async throws {
        try await switchProject(["supabase": settings])
    }

    func letter(_ box: String = "mailbox") async throws -> JSON {
        let letters = try await sandbox.request("GET", "/supabase/sandbox/\(box)").json["letters"]?.array ?? []
        return try #require(letters.last)
    }

    func code(_ box: String = "mailbox") async throws -> String {
        try #require(try await letter(box)["code"]?.string)
    }

    func awaitCode() async throws {
        try await eventually("a flow that waits for a code") {
            let flows = try await api("GET", "/v1/flows")["flows"]?.array ?? []
            return flows.contains { $0["status"] == "pending" }
        }
    }

    func signUp(_ email: String = "mira@example.org", password: String = "secret12") async throws {
        let login = try await ringback(
            "login", "app", "--method", "sign_up", "--email", email, stdin: "\(password)\n")
        #expect(login.status == 0 && login.out == "Signed in to app as \(email)\n", "\(login)")
    }

    @discardableResult
    func logIn(
        _ options: String..., email: String = "mira@example.org", password: String = "secret12", status: Int32? = 0,
        out: String? = nil, prints: String..., says: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Output {
        let arguments = ["login", "app", "--method", "password", "--email", email] + options
        let output = try await run("ringback", arguments, stdin: "\(password)\n")
        output.check(arguments, status, out: out, prints: prints, says: says, at: sourceLocation)
        return output
    }

    /// An ID token that an app of alice's got from the provider itself, for the nonce `a raw nonce`.
    func idToken() async throws -> String {
        let issuer = "\(sandbox.origin)/supabase"
        let digest = "8595ede0f2099687b2e9fc78f23b7ffac44dd62a23cdc332cb8925f592a57cb1"
        // The pair of RFC 7636, appendix B.
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        let location = try await Browser.location(
            after: "user=alice&decision=allow",
            at: "\(issuer)/authorize?response_type=code&client_id=ringback-demo&scope=openid%20email&state=s"
                + "&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&nonce=\(digest)"
                + "&code_challenge=\(challenge)&code_challenge_method=S256")
        let code = location.split(separator: "code=").last?.prefix { $0 != "&" } ?? ""
        let answer = try await run(
            "/usr/bin/curl",
            [
                "-sS", "\(issuer)/token", "-d", "grant_type=authorization_code&client_id=ringback-demo&code=\(code)",
                "-d",
                "redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback", "-d",
                "code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            ])
        return try #require(try answer.json["id_token"]?.string)
    }
}
