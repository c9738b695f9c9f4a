import RingbackBase
import Testing

@Suite struct `The funnel of an app at a project` {
    private static let browser = Browser.environment

    private func listen(_ stage: Stage) async throws -> Funnel {
        let program = try stage.start("ringback", ["events", "--telemetry"])
        try await stage.eventually("a first line") {
            _ = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "nobody@example.org", stdin: "wrong123\n")
            return program.output.value.lines.contains { $0.contains(#""auth_failed""#) }
        }
        return Funnel(program: program, seen: program.output.value.lines.count)
    }

    private struct Funnel {
        let program: Program
        var seen: Int

        /// The lines from the last call up to the next one of this kind.
        mutating func upTo(_ event: String) async throws -> [JSON] {
            let from = seen
            let lines = try await program.output.first("\(event), from the funnel", within: Bound.usual) { transcript in
                let fresh = transcript.lines.dropFirst(from)
                return fresh.firstIndex { $0.contains(#""event":"\#(event)""#) }.map { Array(fresh[...$0]) }
            }
            seen += lines.count
            return try lines.map { try JSON(parsing: $0.utf8) }
        }
    }

    /// The lines of a way in that is gone to its end.
    private func expectWalk(_ funnel: inout Funnel, _ way: String, links: Bool = false) async throws {
        let lines = try await funnel.upTo("auth_completed")
        #expect(
            lines.map { $0["event"]?.string }
                == ["auth_method_selected", "auth_started"] + (links ? ["account_linked"] : []) + ["auth_completed"],
            "\(lines)")
        for line in lines {
            #expect(line["method"]?.string == way && line["account"] == "app", "\(way): \(line)")
            #expect((line["at"]?.integer ?? 0) > 1_700_000_000, "\(line)")
        }
        #expect((lines.last?["duration_ms"]?.integer ?? -1) >= 0, "\(lines)")
        #expect(lines.allSatisfy { $0["error_type"] == nil }, "\(lines)")
    }

    @Test func `telemetry names the method of each sign-in from its selection to its end`() async throws {
        try await Stage.playProject(["mail_interval": 0, "sms_interval": 0]) { stage in
            var funnel = try await listen(stage)
            try await stage.signUp()
            try await expectWalk(&funnel, "email")
            try await stage.ringback("logout", "app")
            let password = ["login", "app", "--method", "password", "--email", "mira@example.org"]
            try await stage.run("ringback", password, stdin: "secret12\n", status: 0)
            try await expectWalk(&funnel, "email")
            for (arguments, way, links) in [
                (["--with", "github"], "github", false), (["--with", "apple"], "apple", true),
                (["--method", "sso", "--domain", "company.example"], "sso", false),
            ] {
                try await stage.ringback("logout", "app")
                try await stage.run("ringback", ["login", "app"] + arguments, environment: Self.browser, status: 0)
                try await expectWalk(&funnel, way, links: links)
            }
            try await stage.ringback("logout", "app")
            try await stage.ringback("login", "app", "--method", "anonymous", status: 0)
            try await expectWalk(&funnel, "anonymous")
            try await stage.ringback("logout", "app")
            let token = try await stage.idToken()
            try await stage.ringback(
                "login", "app", "--method", "id_token", "--with", "google", stdin: "\(token)\na raw nonce\n", status: 0)
            try await expectWalk(&funnel, "google", links: true)
            try await stage.ringback("logout", "app")
            try await expectCodes(stage, &funnel)
            let text = funnel.program.output.value.text
            for secret in ["example.org", "+49", "secret12", "nonce"] { #expect(!text.contains(secret), "\(secret)") }
        }
    }

    private func expectCodes(_ stage: Stage, _ funnel: inout Funnel) async throws {
        for (arguments, box, way) in [
            (["--method", "otp", "--phone", "+4915112345678"], "messages", "phone"),
            (["--method", "otp", "--email", "mira@example.org"], "mailbox", "email"),
            (["--method", "magic_link", "--email", "mira@example.org"], "mailbox", "email"),
        ] {
            let login = try stage.start("ringback", ["login", "app", "--wait"] + arguments)
            _ = try await login.errorLine("what it waits for") { $0.contains("Waiting for the code") }
            try await stage.ringback("verify", "app", stdin: "\(try await stage.code(box))\n", status: 0)
            #expect(try await login.end().status == 0)
            try await expectWalk(&funnel, way)
            try await stage.ringback("logout", "app")
        }
    }

    @Test func `telemetry reports cancelled, failed and expired sign-ins with the reason`() async throws {
        try await Stage.playProject { stage in
            var funnel = try await listen(stage)
            let login = try stage.start("ringback", ["login", "app", "--with", "github", "--no-browser"])
            _ = try await login.line("the address")
            try await stage.ringback("cancel", "app", status: 0)
            let cancelled = try await funnel.upTo("auth_cancelled")
            #expect(cancelled.last?["method"] == "github", "\(cancelled)")
            #expect((cancelled.last?["duration_ms"]?.integer ?? -1) >= 0, "\(cancelled)")

            try await stage.ringback("login", "app", "--with", "gitlab", "--no-browser", status: 1)
            let disabled = try #require(try await funnel.upTo("auth_failed").last)
            #expect(disabled["method"] == "gitlab" && disabled["error_type"]?.string?.isEmpty == false, "\(disabled)")

            try await stage.logIn(status: 1)
            let refused = try #require(try await funnel.upTo("auth_failed").last)
            #expect(refused["method"] == "email" && refused["error_type"] == "invalid_credentials", "\(refused)")

            try await stage.api(
                "POST", "/v1/accounts/app/sign-in", ["oauth_provider": "github", "timeout": 1], status: 201)
            let late = try #require(try await funnel.upTo("auth_failed").last)
            #expect(late["method"] == "github" && late["error_type"] == "flow_expired", "\(late)")
            #expect((late["duration_ms"]?.integer ?? 0) >= 1_000, "\(late)")
        }
    }
}
