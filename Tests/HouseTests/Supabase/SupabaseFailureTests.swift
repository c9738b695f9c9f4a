// A sign-in that a project refuses, as callers, listeners and the account see it.

import RingbackBase
import Testing

@Suite struct `A sign-in that a project refuses` {
    private static let people: JSON = [["email": "mira@example.org", "password": "secret12"]]
    private static let route = "/v1/accounts/app/sign-in"

    /// The settings of the project, and the body of the sign-in.
    static let refusals: [(JSON, JSON)] = [
        ([:], ["method": "password", "email": "mira@example.org", "password": "wrong123"]),
        ([:], ["oauth_provider": "gitlab"]),
        (["mail_limit": 0, "autoconfirm": false], ["method": "magic_link", "email": "mira@example.org"]),
    ]

    @Test(arguments: refusals.indices)
    func `a refused sign-in is an event and the account's error, until one succeeds`(index: Int) async throws {
        let (settings, body) = Self.refusals[index]
        try await Stage.playProject(settings) { stage in
            try await stage.setProject(["users": Self.people])
            let events = try stage.start("ringback", ["events", "app", "--json"])
            _ = try await events.line("the first event")
            let refused = try await stage.api("POST", Self.route, body)
            #expect(refused.status >= 400, "\(refused)")
            let account = try await stage.account("app")
            #expect(account["error"]?["code"]?.string == refused.code, "\(account)")
            #expect(account["state"] == "unauthenticated" && account["flow"] == nil, "\(account)")
            let line = try await events.line("sign_in_failed") { $0.contains(#""event":"sign_in_failed""#) }
            let event = try JSON(parsing: line.utf8)
            #expect(event["state"] == "unauthenticated" && event["account"] == "app", "\(event)")
            #expect(event["error"]?["code"]?.string == refused.code, "\(event)")
            #expect(event["error"]?["user_message"] == refused["user_message"], "\(event)")
            try await stage.setProject(["configuration": "A"])
            let right = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(right.status == 0, "\(right)")
            #expect(try await stage.account("app")["error"] == nil)
            _ = try await events.line("signed_in") { $0.contains(#""event":"signed_in""#) && !$0.contains(#""error""#) }
        }
    }

    // MARK: A session that is handed in

    @Test func `a session of another project is refused with both names, and shown to neither project`() async throws {
        try await Stage.playProject(["algorithm": "HS256"]) { stage in
            let other = "\(stage.sandbox.origin)/tenant-b"
            try await stage.sandbox.control(
                ["supabase": ["users": Self.people, "algorithm": "HS256"]], issuer: "/tenant-b")
            let grant = try await stage.run(
                "/usr/bin/curl",
                [
                    "-sS", "-H", "apikey: sb_publishable_sandbox", "-H", "Content-Type: application/json", "-d",
                    #"{"email":"mira@example.org","password":"secret12"}"#,
                    "\(other)/auth/v1/token?grant_type=password",
                ])
            let session = try JSON(parsing: grant.out.utf8)
            let tokens = ["access_token", "refresh_token"].map { session[$0]?.string ?? "" }
            let login = try await stage.ringback(
                "login", "app", "--method", "session", stdin: tokens.joined(separator: "\n"))
            #expect(login.status == 64 && login.err.contains("another project"), "\(login)")
            #expect(login.err.contains("\(other)/auth/v1"), "\(login)")
            #expect(login.err.contains("\(stage.sandbox.origin)/supabase/auth/v1"), "\(login)")
            // What is another project's is shown to nobody else.
            let log = try await stage.sandbox.logText(issuer: "/supabase")
            #expect(!tokens.contains { log.contains($0) })
        }
    }
}
