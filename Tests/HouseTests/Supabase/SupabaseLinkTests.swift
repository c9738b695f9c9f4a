import Glibc
import RingbackBase
import Testing

@Suite struct `What a project links in silence` {
    private static let browser = Browser.environment

    private func logIn(_ stage: Stage) async throws {
        try await stage.ringback(
            "login", "app", "--with", "github", environment: Self.browser, status: 0,
            out: "Signed in to app as alice@example.org\n")
    }

    private func logInByPassword(_ stage: Stage) async throws {
        try await stage.logIn(email: "alice@example.org")
    }

    /// The audit log's lines of identities. What a sign-in brings is there when it is done; what a refresh brings comes
    /// with it.
    private func told(_ stage: Stage) async throws -> [JSON] {
        let audit = try await stage.ringback("audit", "--json")
        return try audit.lines.map { try JSON(parsing: $0.utf8) }.filter {
            $0["event"]?.string?.hasPrefix("identity_") == true
        }
    }

    private func expect(_ count: Int, _ stage: Stage) async throws -> [JSON] {
        try await stage.eventually("\(count) lines of identities") { try await told(stage).count >= count }
        let lines = try await told(stage)
        #expect(lines.count == count, "\(lines)")
        return lines
    }

    @Test func `an identity that the project links by the address is told once in audit and telemetry`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp("alice@example.org")
            try await stage.ringback("logout", "app", status: 0)
            // A daemon that has seen nobody.
            try await stage.stopDaemon()
            try await stage.startDaemon()
            let funnel = try stage.start("ringback", ["events", "--telemetry"])
            try await stage.eventually("a first line") {
                _ = try await stage.ringback(
                    "login", "app", "--method", "password", "--email", "nobody@example.org", stdin: "wrong123\n")
                return !funnel.output.value.lines.isEmpty
            }
            try await logIn(stage)
            let lines = try await expect(1, stage)
            #expect(lines.first?["event"] == "identity_linked" && lines.first?["account"] == "app", "\(lines)")
            #expect(lines.first?["identity_provider"] == "github" && lines.first?["inferred"] == true, "\(lines)")
            #expect(lines.first?["linked_at"] == nil, "\(lines)")
            let linked = try await funnel.line("the link") { $0.contains(#""account_linked""#) }
            #expect(linked.contains(#""method":"github""#) && linked.contains(#""account":"app""#), "\(linked)")
            for _ in 0..<2 {
                try await stage.ringback("logout", "app", status: 0)
                try await logInByPassword(stage)
                try await stage.ringback("refresh", "app", "--force", status: 0)
            }
            _ = try await expect(1, stage)
            #expect(funnel.output.value.lines.count { $0.contains("account_linked") } == 1)
        }
    }
}
