// What is told of a sign-in that a project refuses: to the caller, to who listens, and in the account. And what is not
// told: a caller's own mistake, or a change of a person who stays signed in.

import RingbackBase
import Testing

@Suite struct `A sign-in that a project refuses` {
    private static let people: JSON = [["email": "mira@example.org", "password": "secret12"]]
    private static let route = "/v1/accounts/app/sign-in"

    /// The settings of the project, and the body of the sign-in.
    static let refusals: [(JSON, JSON)] = [
        ([:], ["method": "password", "email": "mira@example.org", "password": "wrong123"]),
        ([:], ["method": "otp", "email": "nobody@example.org", "create_user": false]),
        ([:], ["oauth_provider": "gitlab"]),
        ([:], ["method": "sso", "domain": "nobody.example"]),
        ([:], ["method": "id_token", "oauth_provider": "google", "id_token": "a.b.c", "nonce": "n"]),
        (["password_min_length": 10], ["method": "sign_up", "email": "eve@example.org", "password": "secret12"]),
        ([:], ["method": "sign_up", "email": "eve@example.org", "password": "short"]),
        ([:], ["method": "sign_up", "email": "mira@example.org", "password": "secret12"]),
        (["mail_limit": 0, "autoconfirm": false], ["method": "magic_link", "email": "mira@example.org"]),
        (["anonymous": false], ["method": "anonymous"]),
        (["captcha": "right"], ["method": "anonymous"]),
    ]

    @Test(arguments: refusals.indices)
    func `is an event and the account's error, until one succeeds`(index: Int) async throws {
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

    @Test func `for a mistake of the caller's own is none`() async throws {
        try await Stage.playProject { stage in
            let mistakes: [JSON] = [
                ["method": "password", "email": "not an address", "password": "secret12"],
                ["method": "password", "email": "mira@example.org"], ["method": "session", "access_token": "x"],
                ["method": "otp", "email": "mira@example.org", "channel": "pigeon"],
            ]
            for body in mistakes {
                let refused = try await stage.api("POST", Self.route, body)
                #expect(refused.status == 400 && refused.code == "validation_failed", "\(refused)")
                #expect(try await stage.account("app")["error"] == nil)
            }
            let events = try await events(of: stage) { try await stage.signUp() }
            #expect(events == ["initial_session", "signed_in"])
        }
    }

    @Test func `leaves a session that is held as it is`() async throws {
        try await Stage.playProject(["users": Self.people]) { stage in
            try await stage.signUp("eve@example.org")
            let other = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(other.status == 1, "\(other)")
            let account = try await stage.account("app")
            #expect(account["state"] == "authenticated" && account["user"]?["email"] == "eve@example.org")
            #expect(account["error"]?["code"] == "state_conflict", "\(account)")
            #expect(try await stage.ringback("refresh", "app", "--force").status == 0)
            #expect(try await stage.account("app")["error"] == nil)
        }
    }

    /// The kinds of all events from the first one to the one that ends a deed.
    private func events(of stage: Stage, until last: String = "signed_in", _ deed: () async throws -> Void)
        async throws -> [String]
    {
        let program = try stage.start("ringback", ["events", "app", "--json"])
        _ = try await program.line("the first event")
        try await deed()
        let lines = try await program.output.first(last) { transcript in
            transcript.lines.last?.contains(#""event":"\#(last)""#) == true ? transcript.lines : nil
        }
        return try lines.compactMap { try JSON(parsing: $0.utf8)["event"]?.string }
    }

    @Test func `is not a change of a person who stays signed in, however it ends`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            let seen = try await events(of: stage, until: "token_refreshed") {
                // Refused before there is a flow, expired, and refused at the provider.
                let refused = try await stage.api(
                    "POST", "/v1/accounts/app/identities", ["oauth_provider": "gitlab"])
                #expect(refused.code == "method_unsupported", "\(refused)")
                let late = try await stage.api(
                    "POST", "/v1/accounts/app/identities", ["oauth_provider": "github", "timeout": 1])
                let path = "/v1/flows/\(late["id"]?.string ?? "")"
                #expect(try await stage.api("GET", "\(path)?wait=20")["status"] == "expired")
                let again = try await stage.api("POST", "/v1/accounts/app/identities", ["oauth_provider": "github"])
                let callback = "\(again["redirect_uri"]?.string ?? "")?error=access_denied&error_description=no"
                let answer = try await stage.api("POST", "/v1/callbacks", ["url": .string(callback)])
                #expect(answer["flow"]?["status"] == "failed", "\(answer)")
                // Messages that are not sent.
                try await stage.setProject(["mail_limit": 0, "autoconfirm": false])
                #expect(try await stage.api("POST", "/v1/accounts/app/reauthenticate").code == "rate_limited")
                let change = try await stage.api("PATCH", "/v1/accounts/app/user", ["email": "new@example.org"])
                #expect(change.status >= 400, "\(change)")
                let account = try await stage.account("app")
                #expect(account["state"] == "authenticated" && account["error"] == nil, "\(account)")
                #expect(try await stage.ringback("refresh", "app", "--force").status == 0)
            }
            #expect(seen.filter { $0 == "sign_in_failed" || $0 == "refresh_failed" }.isEmpty, "\(seen)")
        }
    }

    // MARK: A session that is handed in

    @Test(arguments: ["HS256", "ES256"])
    func `for a session of another project names both`(algorithm: String) async throws {
        try await Stage.playProject(["algorithm": .string(algorithm)]) { stage in
            let other = "\(stage.sandbox.origin)/tenant-b"
            try await stage.sandbox.control(
                ["supabase": ["users": Self.people, "algorithm": .string(algorithm)]], issuer: "/tenant-b")
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

@Suite struct `A session that was to leave nothing behind` {
    @Test func `ends when the vault is locked, also while its account is not configured`() async throws {
        try await Stage.playProject { stage in
            let login = try await stage.ringback(
                "login", "app", "--method", "sign_up", "--email", "mira@example.org", "--no-persist",
                stdin: "secret12\n")
            #expect(login.status == 0, "\(login)")
            try stage.write(configuration: "")
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == 0)
            #expect(try await stage.ringback("lock").status == 0)
            try await stage.eventually("the project hears of its end") {
                try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == 1
            }
            try stage.write(configuration: Stage.project)
            #expect(try await stage.ringback("unlock").status == 0)
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.ringback("token", "app").status == 3)
        }
    }

    @Test func `comes back with its account while the vault is open, and ends with the daemon`() async throws {
        try await Stage.playProject { stage in
            let login = try await stage.ringback(
                "login", "app", "--method", "sign_up", "--email", "mira@example.org", "--no-persist",
                stdin: "secret12\n")
            #expect(login.status == 0, "\(login)")
            try stage.write(configuration: "")
            #expect(try await stage.ringback("reload").status == 0)
            try stage.write(configuration: Stage.project)
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.ringback("token", "app").status == 0)
            try stage.write(configuration: "")
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == 0)
            try await stage.stopDaemon()
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == 1)
        }
    }
}
