// AWS credentials of a role (`[accounts.NAME.aws]`), by the real programs and a token service of the tests' own.

import StrictJSON
import Testing

/// A token service that says what it was asked.
private struct RoleService {
    let program: Program
    let port: String
    let answers: String

    func answer(_ text: String, _ stage: Stage) throws { try stage.write(text, to: answers) }

    /// The forms that it got, in order.
    var forms: [JSON] {
        program.output.value.lines.dropFirst().compactMap { line in
            try? JSON(parsing: line.drop { $0 != "{" }.utf8)
        }
    }

    func asked(_ number: Int) async throws {
        _ = try await program.line("exchange \(number)") { $0.hasPrefix("\(number) ") }
    }
}

extension Stage {
    /// What `ringback aws-credentials` prints.
    fileprivate func credentials() async throws -> JSON {
        let answer = try await ringback("aws-credentials", "work")
        guard answer.status == 0, answer.err.isEmpty, answer.lines.count == 1 else {
            throw Late(what: "credentials, not \(answer)")
        }
        return try JSON(parsing: answer.out.utf8)
    }
}

@Suite struct `Credentials of an AWS role` {
    /// Signs in to an account with a role.
    ///
    /// - Parameter answer: what the token service does at first.
    private static func play(
        _ answer: String, _ rest: String = "", _ test: (Stage, RoleService) async throws -> Void
    ) async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let answers = "\(stage.directory)/role-answer"
            try stage.write(answer, to: answers)
            let program = try stage.start(
                "/usr/bin/env", ["python3", "-B", "\(Document.root)/Tests/Programs/role_service.py", stage.directory])
            let service = RoleService(
                program: program, port: try await program.line("the port of the token service"), answers: answers)
            try stage.write(
                configuration: Stage.twoAccounts + """
                    [accounts.work.aws]
                    role_arn = "arn:aws:iam::123456789012:role/work"
                    endpoint = "http://127.0.0.1:\(service.port)/"
                    \(rest)
                    """)
            try await stage.startDaemon()
            try await stage.signIn()
            try await test(stage, service)
        }
    }

    @Test func `are exchanged for the ID token, held, and forgotten with the sign-out`() async throws {
        try await Self.play("ok 3600", "session_name = \"ada\"\nduration = \"2h\"") { stage, service in
            let first = try await stage.credentials()
            #expect(first["Version"] == 1 && first["AccessKeyId"] == "ASIA1" && first["SecretAccessKey"] == "secret-1")
            #expect(first["SessionToken"] == "session-1" && first["Expiration"]?.string?.hasSuffix("Z") == true)
            #expect(try await stage.credentials() == first)
            let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
            #expect(
                service.forms == [
                    [
                        "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15",
                        "RoleArn": "arn:aws:iam::123456789012:role/work", "RoleSessionName": "ada",
                        "DurationSeconds": "7200", "WebIdentityToken": session["id_token"] ?? .null,
                    ]
                ])
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["operation"] == "aws_credentials" && $0["account"] == "work" }, "\(audit)")

            #expect(try await stage.ringback("logout", "work").status == 0)
            let ended = try await stage.ringback("aws-credentials", "work")
            #expect(ended.status == 3 && ended.out.isEmpty && ended.err.contains("ringback login work"), "\(ended)")
            try await stage.signIn()
            #expect(try await stage.credentials()["AccessKeyId"] == "ASIA2")
        }
    }

    @Test func `are exchanged once for many who ask at a time`() async throws {
        try await Self.play("held") { stage, service in
            let programs = try (1...12).map { _ in try stage.start("ringback", ["aws-credentials", "work"]) }
            try await service.asked(1)
            _ = try await stage.tcp(try #require(Int(service.port)), "GET /release HTTP/1.1\r\nHost: a\r\n\r\n")
            var answers: Set<String> = []
            for program in programs {
                let answer = try await program.end()
                #expect(answer.status == 0, "\(answer)")
                answers.insert(answer.out)
            }
            #expect(answers.count == 1 && service.forms.count == 1)
        }
    }

    @Test func `of a session that was closed meanwhile are given to nobody`() async throws {
        try await Self.play("held") { stage, service in
            let program = try stage.start("ringback", ["aws-credentials", "work"])
            try await service.asked(1)
            #expect(try await stage.ringback("logout", "work").status == 0)
            // It does not wait for the token service.
            let answer = try await program.end()
            #expect(answer.status == 3 && answer.out.isEmpty, "\(answer)")
            try await stage.signIn()
            try service.answer("ok 3600", stage)
            #expect(try await stage.credentials()["AccessKeyId"] == "ASIA2")
            _ = try await stage.tcp(try #require(Int(service.port)), "GET /release HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await stage.credentials()["AccessKeyId"] == "ASIA2")
        }
    }

    @Test func `take one refresh if the service finds the token expired`() async throws {
        try await Self.play("expired 1") { stage, service in
            let found = try await stage.credentials()
            #expect(found["AccessKeyId"] == "ASIA2")
            let tokens = service.forms.map { $0["WebIdentityToken"]?.string ?? "" }
            #expect(tokens.count == 2 && tokens[0] != tokens[1])
            #expect(try await stage.sandbox.counters().tokenRequests("refresh_token") == 1)
        }
        try await Self.play("expired 9") { stage, service in
            let answer = try await stage.ringback("aws-credentials", "work")
            #expect(answer.status == 1 && answer.out.isEmpty, "\(answer)")
            #expect(answer.err.contains("“ExpiredTokenException”: Not done: as asked"), "\(answer)")
            #expect(service.forms.count == 2)
        }
    }

    @Test func `are kept while the service fails, and forgotten with the vault's key`() async throws {
        try await Self.play("ok 900") { stage, service in
            let first = try await stage.credentials()
            try service.answer("text 503", stage)
            #expect(try await stage.credentials() == first)
            #expect(service.forms.count == 1)
            #expect(try await stage.ringback("lock").status == 0)
            let locked = try await stage.ringback("aws-credentials", "work")
            #expect(locked.status == 1 && locked.out.isEmpty && locked.err.contains("ringback unlock"), "\(locked)")
            #expect(try await stage.ringback("unlock").status == 0)
            let failing = try await stage.ringback("aws-credentials", "work")
            #expect(failing.status == 5 && failing.err.contains("HTTP status 503"), "\(failing)")
        }
    }

    @Test func `are not given for what the service refuses, and no token is repeated`() async throws {
        try await Self.play("error 403 AccessDenied", "kind = \"access_token\"") { stage, service in
            let refused = try await stage.ringback("aws-credentials", "work")
            #expect(refused.status == 1 && refused.out.isEmpty, "\(refused)")
            #expect(refused.err.contains("responded with “AccessDenied”: Not done: as asked"), "\(refused)")
            #expect(service.forms.last?["WebIdentityToken"]?.string == (try await stage.token()))
            try service.answer("error 400 Quoting", stage)
            let quoting = try await stage.ringback("aws-credentials", "work")
            #expect(quoting.status == 1 && quoting.err.contains("“Quoting”"), "\(quoting)")
            #expect(!quoting.err.contains("Not done"), "\(quoting)")
            try service.answer("text 200", stage)
            let other = try await stage.ringback("aws-credentials", "work")
            #expect(other.status == 5 && other.err.contains("is not valid"), "\(other)")
            let none = try await stage.ringback("aws-credentials", "home")
            #expect(none.status == 1 && none.err.contains("[accounts.home.aws]"), "\(none)")
        }
    }

    @Test func `are of the role that the configuration names now`() async throws {
        try await Self.play("ok 3600") { stage, service in
            #expect(try await stage.credentials()["AccessKeyId"] == "ASIA1")
            let text = try #require(FileTree.text(of: stage.configuration))
            try stage.write(text.replacing(":role/work", with: ":role/other"), to: stage.configuration)
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.credentials()["AccessKeyId"] == "ASIA2")
            #expect(service.forms.last?["RoleArn"] == "arn:aws:iam::123456789012:role/other")
        }
    }
}
