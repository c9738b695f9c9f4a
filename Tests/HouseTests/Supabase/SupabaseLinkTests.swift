// Identities come and go at a project without anybody's asking here: whoever signs in at a provider with the same
// confirmed address has the provider's account linked, in silence. The audit log knows.

import Glibc
import RingbackBase
import Testing

@Suite struct `What a project links in silence` {
    private static let browser = ["BROWSER": "curl -sSL -o /dev/null"]

    private func logIn(_ stage: Stage) async throws {
        let login = try await stage.run("ringback", ["login", "app", "--with", "github"], environment: Self.browser)
        #expect(login.status == 0 && login.out == "Signed in to app as alice@example.org\n", "\(login)")
    }

    private func logInByPassword(_ stage: Stage) async throws {
        let login = try await stage.ringback(
            "login", "app", "--method", "password", "--email", "alice@example.org", stdin: "secret12\n")
        #expect(login.status == 0, "\(login)")
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

    @Test func `by a sign-in with the same address is told once, in the audit log and in the funnel`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp("alice@example.org")
            #expect(try await stage.ringback("logout", "app").status == 0)
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
                #expect(try await stage.ringback("logout", "app").status == 0)
                try await logInByPassword(stage)
                #expect(try await stage.ringback("refresh", "app", "--force").status == 0)
            }
            _ = try await expect(1, stage)
            #expect(funnel.output.value.lines.count { $0.contains("account_linked") } == 1)
        }
    }

    @Test func `by another program is seen with the next refresh, and so is what it takes away`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp("alice@example.org")
            // Somewhere else, the same person signs in at the provider.
            _ = try await stage.run(
                "/usr/bin/curl",
                [
                    "-sSL", "-o", "/dev/null",
                    "\(stage.sandbox.origin)/supabase/auth/v1/authorize?provider=github",
                ])
            #expect(try await stage.ringback("refresh", "app", "--force").status == 0)
            let linked = try #require(try await expect(1, stage).first)
            #expect(linked["event"] == "identity_linked" && linked["inferred"] == true, "\(linked)")
            let user = try await stage.api("GET", "/v1/accounts/app/user")
            let github = user["user"]?["identities"]?.array?.first { $0["provider"] == "github" }
            let id = try #require(github?["identity_id"]?.string, "\(user)")
            #expect(try await stage.ringback("logout", "app", "--scope", "local").status == 0)
            let removed = try await stage.sandbox.request(
                "DELETE", "/supabase/auth/v1/user/identities/\(id)", nil,
                fields: [("apikey", "sb_publishable_sandbox"), ("Authorization", "Bearer \(try await token(stage))")])
            #expect(removed.status == 200, "\(removed)")
            try await logInByPassword(stage)
            let lines = try await expect(2, stage)
            #expect(lines.last?["event"] == "identity_unlinked" && lines.last?["inferred"] == true, "\(lines)")
            #expect(lines.last?["identity_provider"] == "github", "\(lines)")
        }
    }

    /// An access token of the same person, of another program's.
    private func token(_ stage: Stage) async throws -> String {
        let answer = try await stage.sandbox.request(
            "POST", "/supabase/auth/v1/token?grant_type=password",
            ["email": "alice@example.org", "password": "secret12"], fields: [("apikey", "sb_publishable_sandbox")])
        return try #require(answer["access_token"]?.string, "\(answer)")
    }

    @Test func `is nothing where somebody signs up, and told apart from what was asked for`() async throws {
        try await Stage.playProject { stage in
            try await logIn(stage)
            #expect(try await stage.ringback("refresh", "app", "--force").status == 0)
            #expect(try await told(stage).isEmpty)
            let link = try await stage.run(
                "ringback", ["supabase", "link", "app", "--with", "google"], environment: Self.browser)
            #expect(link.status == 0, "\(link)")
            let identities = try await stage.ringback("supabase", "identities", "app", "--json")
            let google = try JSON(parsing: identities.out.utf8)["identities"]?.array?.first {
                $0["provider"] == "google"
            }
            let id = try #require(google?["identity_id"]?.string, "\(identities)")
            #expect(try await stage.ringback("supabase", "unlink", "app", id).status == 0)
            let lines = try await expect(2, stage)
            #expect(lines.map { $0["event"]?.string } == ["identity_linked", "identity_unlinked"], "\(lines)")
            #expect(lines.allSatisfy { $0["identity_provider"] == "google" && $0["inferred"] == nil }, "\(lines)")
        }
    }

    @Test func `to somebody who was never here is told by its age`() async throws {
        try await Stage.playProject { stage in
            try await stage.setProject(["users": [["email": "alice@example.org", "password": "secret12"]]])
            try await stage.sandbox.control(["advance_clock": 3_600], issuer: "/supabase")
            // The first sign-in here is what links.
            try await logIn(stage)
            let fresh = try #require(try await expect(1, stage).first)
            #expect(fresh["inferred"] == true && fresh["linked_at"] == nil, "\(fresh)")
            // As on another machine, an hour later.
            #expect(try await stage.ringback("logout", "app").status == 0)
            try await stage.stopDaemon()
            let known = FileTree.all(in: stage.state).filter { $0.hasSuffix(".people") }
            #expect(known.count == 1)
            for path in known { unsafe unlink(path) }
            try await stage.sandbox.control(["advance_clock": 3_600], issuer: "/supabase")
            try await stage.startDaemon()
            try await logInByPassword(stage)
            let former = try #require(try await expect(2, stage).last)
            #expect(former["identity_provider"] == "github" && former["inferred"] == true, "\(former)")
            let linkedAt = try #require(former["linked_at"]?.integer)
            #expect(linkedAt > (former["time"]?.integer ?? 0) && linkedAt < (former["time"]?.integer ?? 0) + 3_700)
        }
    }

    @Test func `leaves no trace of who is to leave none`() async throws {
        try await Stage.playProject { stage in
            let login = try await stage.run(
                "ringback", ["login", "app", "--with", "github", "--no-persist"], environment: Self.browser)
            #expect(login.status == 0, "\(login)")
            #expect(try await stage.ringback("logout", "app").status == 0)
            #expect(!FileTree.all(in: stage.state).contains { $0.hasSuffix(".people") })
        }
    }
}
