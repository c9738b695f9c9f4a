import Glibc
import RingbackBase
import Testing

func makeAssertion(
    _ stage: Stage, subject: String = "build-42", lifetime: Int = 300, audience: String? = nil
) async throws -> String {
    var body: JSON = ["subject": .string(subject), "lifetime": .integer(lifetime)]
    if let audience { body = ["subject": .string(subject), "audience": .string(audience)] }
    let answer = try await stage.sandbox.request("POST", "/sandbox/assertion", body)
    guard let assertion = answer["assertion"]?.string else { throw Late(what: "an assertion, not \(answer)") }
    return assertion
}

extension Stage {
    static func playService(
        _ lines: String, startsDaemon: Bool = true, _ test: (Stage) async throws -> Void
    ) async throws {
        let configuration = """
            [accounts.build]
            issuer = "{sandbox}"
            client_id = "robot"
            client_secret_file = "{stage}/secret"
            \(lines)
            """
        try await play(configuration, startsDaemon: false) { stage in
            try stage.write("robot-hush\n", to: "\(stage.directory)/secret")
            try await stage.sandbox.control(["clients": [["id": "robot", "secret": "robot-hush"]]])
            if startsDaemon { try await stage.startDaemon() }
            try await test(stage)
        }
    }

    func tokenForms() async throws -> [JSON] {
        try await sandbox.log().filter { $0["endpoint"]?.string == "token" }.map { $0["parameters"] ?? [:] }
    }
}

@Suite struct `A service account` {
    private static let plain = "grant = \"client_credentials\"\nscopes = [\"deploy\"]\n"

    @Test func `account add writes a service with its grant, audience, credential and assertion`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let issuer = ["--issuer", "https://id.example.org", "--offline", "--grant"]
            try await stage.run(
                "ringback",
                ["account", "add", "deploy"] + issuer + [
                    "client_credentials", "--client-id", "robot", "--credential", "robot-secret", "--audience",
                    "https://api.example.org", "--login",
                ], status: 0, says: "Then run: ringback token deploy")
            let deploy = FileTree.text(of: "\(stage.dropIns)/deploy.toml") ?? ""
            let lines = [
                "client_id = \"robot\"", "client_secret_credential = \"robot-secret\"",
                "grant = \"client_credentials\"", "audience = \"https://api.example.org\"",
            ]
            for line in lines { #expect(deploy.contains("\n\(line)\n"), "\(line): \(deploy)") }
            #expect(!deploy.contains("scopes"), "\(deploy)")

            try await stage.run(
                "ringback", ["account", "add", "pod"] + issuer + ["jwt_bearer", "--assertion-file", "/run/token"],
                status: 0)
            let pod = FileTree.text(of: "\(stage.dropIns)/pod.toml") ?? ""
            #expect(pod.contains("\nassertion_file = \"/run/token\"\n") && !pod.contains("client_id"), "\(pod)")
            try stage.write(`A client's own key`.key, to: "\(stage.directory)/key")
            try await stage.run(
                "ringback",
                ["account", "add", "robot"] + issuer + [
                    "self_issued_jwt", "--client-id", "robot", "--client-key-file", "\(stage.directory)/key",
                ], status: 0)
            let robot = FileTree.text(of: "\(stage.dropIns)/robot.toml") ?? ""
            #expect(robot.contains("\ngrant = \"self_issued_jwt\"\n"), "\(robot)")
            try await stage.run(
                "ringback", ["account", "add", "bare"] + issuer + ["client_credentials", "--client-id", "robot"],
                status: 64, says: "--grant")
        }
    }

    @Test func `a client_credentials account is authenticated without a sign-in`() async throws {
        try await Stage.playService(Self.plain) { stage in
            try await stage.eventually("a loaded account") {
                try await stage.account("build")["state"]?.string == "authenticated"
            }
            #expect(try await stage.tokenForms().isEmpty)
            let token = try await stage.ringback("token", "build", status: 0)
            #expect(token.out.hasPrefix("at-") && token.err.isEmpty, "\(token)")
            let session = try await stage.api("GET", "/v1/accounts/build/session")
            #expect(session["scope"]?.string == "deploy" && session["subject"] == nil, "\(session)")
            #expect(session["issuer"]?.string == stage.sandbox.origin && session["token_type"]?.string == "Bearer")
            #expect(try await stage.tokenForms().count == 1)
            try await stage.stopDaemon()
            try await stage.startDaemon()
            let other = try await stage.ringback("token", "build", status: 0)
            #expect(other.out != token.out)
            let forms = try await stage.tokenForms()
            // What was handed out before the restart is still good: somebody may be using it.
            let log = try await stage.sandbox.log()
            #expect(!log.contains { $0["endpoint"]?.string == "revocation" })
            #expect(forms.count == 2 && forms.allSatisfy { $0["grant_type"]?.string == "client_credentials" })
        }
    }

    @Test func `login of a service account ends at once`() async throws {
        try await Stage.playService(Self.plain) { stage in
            let answer = try await stage.api("POST", "/v1/accounts/build/sign-in", [:], status: 200)
            #expect(answer["state"]?.string == "authenticated", "\(answer)")
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            try await stage.ringback("login", "build", status: 0, out: "Signed in to build as a service\n")
            // Nothing was fetched yet: there is no end to state, nor to leave out.
            let accounts = try await stage.ringback("accounts", "build")
            let place = try LocalURL(stage.sandbox.origin).authority
            let words = accounts.lines.last?.split(separator: " ").map(String.init)
            #expect(words == ["build", place, "signed", "in", "-", "-"])
            try await stage.api(
                "POST", "/v1/accounts/build/sign-in", ["method": "password"], status: 400, code: "method_unsupported")
            #expect(try await stage.tokenForms().isEmpty)
            // Nor does anybody come back to it.
            let doctor = try await stage.ringback("doctor", "build")
            #expect(doctor.out.contains("discovery build") && !doctor.out.contains("redirect"), "\(doctor)")
        }
    }

    @Test func `a self_issued_jwt account signs a new assertion with its key for each token`() async throws {
        let configuration = """
            [accounts.robot]
            issuer = "{sandbox}"
            client_id = "signs"
            client_key_file = "{stage}/key"
            client_key_id = "k1"
            grant = "self_issued_jwt"
            assertion_subject = "ada"
            scopes = ["read"]
            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try stage.write(`A client's own key`.key, to: "\(stage.directory)/key")
            let keys: JSON = ["keys": [`A client's own key`.publicHalf]]
            try await stage.sandbox.control(["clients": [["id": "signs", "jwks": keys]]])
            try await stage.startDaemon()
            let token = try await stage.ringback("token", "robot", status: 0)
            #expect(token.out.hasPrefix("at-"), "\(token)")
            // The sandbox takes each assertion once.
            try await stage.ringback("refresh", "robot", "--force", status: 0)
            let forms = try await stage.tokenForms()
            #expect(forms.count == 2, "\(forms)")
            for form in forms {
                #expect(form.object?.names.sorted() == ["assertion", "grant_type", "scope"], "\(form)")
                #expect(form["grant_type"]?.string == "urn:ietf:params:oauth:grant-type:jwt-bearer")
                let parts = try #require(form["assertion"]?.string).split(separator: ".")
                let head = try JSON(parsing: #require(Base64URL.decode(parts[0])))
                let claims = try JSON(parsing: #require(Base64URL.decode(parts[1])))
                #expect(head["alg"] == "ES256" && head["kid"] == "k1", "\(head)")
                #expect(claims["iss"] == "signs" && claims["sub"] == "ada" && claims["scope"] == "read", "\(claims)")
                #expect(claims["aud"]?.string == "\(stage.sandbox.origin)/token", "\(claims)")
            }

            try stage.write(
                configuration: "\(configuration)\nassertion_audience = \"https://elsewhere.example\"\n")
            try await stage.ringback("reload", status: 0)
            let refused = try await stage.api("GET", "/v1/accounts/robot/session", status: 422)
            #expect(refused["provider_code"]?.string == "invalid_grant", "\(refused)")
            #expect(refused["detail"]?.string?.contains("client_key_file") == true, "\(refused)")
        }
    }

    @Test func `a saml2_bearer account gets tokens and names an assertion file that others can write`() async throws {
        let configuration = """
            [accounts.pod]
            issuer = "{sandbox}"
            grant = "saml2_bearer"
            assertion_file = "{stage}/assertion.xml"
            scopes = ["read"]
            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            let answer = try await stage.sandbox.request(
                "POST", "/sandbox/assertion", ["subject": "build-42", "format": "saml2"])
            let xml = try #require(answer["assertion"]?.string, "\(answer)")
            let file = "\(stage.directory)/assertion.xml"
            try stage.write(xml + "\n", to: file)
            try await stage.ringback("config", "check", status: 0, prints: "grant = \"saml2_bearer\"")
            try await stage.startDaemon()
            let token = try await stage.ringback("token", "pod", status: 0)
            #expect(token.out.hasPrefix("at-"), "\(token)")
            let forms = try await stage.tokenForms()
            #expect(forms.count == 1 && forms[0]["scope"]?.string == "read" && forms[0]["client_id"] == nil)
            #expect(forms[0]["grant_type"]?.string == "urn:ietf:params:oauth:grant-type:saml2-bearer", "\(forms)")
            let sent = forms[0]["assertion"]?.string ?? ""
            #expect(sent.hasPrefix("PHNhbWw6QXNzZXJ0aW9u") && !sent.contains("="), "\(sent)")

            // Others may not write it; what root's file lets them read is root's decision.
            FileTree.setMode(0o622, of: file)
            try await stage.ringback("refresh", "pod", "--force", status: 78, says: "Run: chmod go-w \(file)")
            FileTree.setMode(0o600, of: file)
            try stage.write(xml.replacing("build-42", with: "admin"), to: file)
            let forged = try await stage.api("POST", "/v1/accounts/pod/refresh", ["force": true], status: 422)
            #expect(forged["provider_code"]?.string == "invalid_grant", "\(forged)")
        }
    }
}
