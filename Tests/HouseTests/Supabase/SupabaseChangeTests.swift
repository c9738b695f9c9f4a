// What makes the same person reachable in another way at a Supabase project, by the command line: another address or
// number, a way in for somebody who had none, a name that is told once, the account of another provider.

import RingbackBase
import Testing

@Suite struct `A person of a Supabase project` {
    private static let strict: JSON = ["configuration": "B", "mail_interval": 0, "sms_interval": 0]

    /// Somebody with a confirmed address, signed in.
    private func play(_ test: (Stage) async throws -> Void) async throws {
        try await Stage.playProject(Self.strict) { stage in
            let mira: JSON = ["email": "mira@example.org", "password": "secret12"]
            try await stage.setProject(["users": [mira]])
            let login = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(login.status == 0, "\(login)")
            try await test(stage)
        }
    }

    /// The codes that went out for a change, by address.
    private func codes(_ stage: Stage, _ box: String = "mailbox") async throws -> [String: String] {
        let letters = try await stage.sandbox.request("GET", "/supabase/sandbox/\(box)").json["letters"]?.array ?? []
        let changes = letters.filter { $0["type"]?.string?.hasSuffix("_change") == true }
        return Dictionary(changes.map { ($0["to"]?.string ?? "", $0["code"]?.string ?? "") }) { $1 }
    }

    // MARK: Another address, another number

    @Test func `update-user --email takes the codes of both addresses on the terminal`() async throws {
        try await play { stage in
            let update = try stage.terminal("supabase", "update-user", "app", "--email", "new@example.org")
            try await update.shows("Check your email. Its link finishes this too")
            try await update.shows("sends another): ")
            update.type("000000")
            try await update.shows("Invalid code. Please try again.")
            try await update.shows("sends another): ")
            let codes = try await codes(stage)
            update.type(try #require(codes["mira@example.org"]))
            try await update.shows("Confirmed. Now confirm at the other address, too.")
            try await update.shows("Awaited: the code for new@example.org")
            try await update.shows("sends another): ")
            update.type(try #require(codes["new@example.org"]))
            let ended = try await update.end()
            #expect(ended.status == 0 && ended.text.contains("E-mail     new@example.org"), "\(ended)")
            #expect(try await stage.account("app")["user"]?["email"] == "new@example.org")
            #expect(try await stage.ringback("refresh", "app").status == 0)
        }
    }

    @Test func `an address change is begun by one command and confirmed in two steps by ringback verify`() async throws
    {
        try await play { stage in
            let begun = try await stage.ringback("supabase", "update-user", "app", "--email", "new@example.org")
            #expect(begun.status == 0 && begun.out.contains("new@example.org waits for its confirmation"), "\(begun)")
            #expect(begun.err.contains("ringback verify app"), "\(begun)")
            let flow = try #require(try await stage.api("GET", "/v1/flows")["flows"]?.array?.last)
            #expect(flow["method"] == "update_user" && flow["waiting_for"] == "code")
            #expect(
                flow["awaiting"]?.array?.compactMap { $0["email"]?.string } == [
                    "new@example.org", "mira@example.org",
                ])
            let codes = try await codes(stage)
            let half = try await stage.ringback("verify", "app", stdin: "\(codes["new@example.org"] ?? "")\n")
            #expect(half.status == 0 && half.out == "Confirmed in part: app\n", "\(half)")
            let wrong = try await stage.ringback("verify", "app", stdin: "000000\n")
            #expect(wrong.status == 1 && wrong.err.contains("Invalid code."), "\(wrong)")
            let whole = try await stage.ringback("verify", "app", stdin: "\(codes["mira@example.org"] ?? "")\n")
            #expect(whole.status == 0 && whole.out == "Confirmed: app is new@example.org\n", "\(whole)")

            let both = try await stage.ringback(
                "supabase", "update-user", "app", "--email", "third@example.org", "--code-fd", "0", "--json")
            #expect(both.status == 4 && both.lines.count == 1, "\(both)")
            #expect(both.err.contains("The change of app still waits"), "\(both)")
            let answer = try JSON(parsing: (both.lines.first ?? "").utf8)
            #expect(answer["user"]?["new_email"] == "third@example.org" && answer["flow"]?["status"] == "pending")
            let more = try await self.codes(stage)
            // Told apart by where they came from, as the API lets an app do.
            let id = answer["flow"]?["id"]?.string ?? ""
            let body: JSON = ["code": .string(more["new@example.org"] ?? ""), "email": "new@example.org"]
            #expect(try await stage.api("POST", "/v1/flows/\(id)/verify", body)["status"] == "pending")
            let last = try await stage.ringback("verify", id, stdin: "\(more["third@example.org"] ?? "")\n")
            #expect(last.out == "Confirmed: app is third@example.org\n", "\(last)")
        }
    }

    @Test func `an address change is confirmed by the links of both mails, with one event`() async throws {
        try await play { stage in
            let events = try stage.start("ringback", ["events", "app", "--json"])
            _ = try await events.line("the first event")
            let update = try stage.terminal("supabase", "update-user", "app", "--email", "new@example.org")
            try await update.shows("sends another): ")
            let letters =
                try await stage.sandbox.request("GET", "/supabase/sandbox/mailbox").json["letters"]?.array ?? []
            for (link, word) in zip(letters.suffix(2).compactMap { $0["link"]?.string }, ["Confirmed", "Signed in"]) {
                let page = try await stage.run("/usr/bin/curl", ["-sSL", link])
                #expect(page.out.contains("<title>\(word)"), "\(page)")
            }
            let ended = try await update.end()
            #expect(ended.status == 0 && ended.text.contains("new@example.org"), "\(ended)")
            _ = try await events.line("the change of the person") { line in
                line.contains(#""event":"user_updated""#) && line.contains(#""email":"new@example.org""#)
            }
            #expect(try await stage.account("app")["user"]?["email"] == "new@example.org")
        }
    }

    @Test func `an address change waits for the second link although the first one is opened twice`() async throws {
        try await play { stage in
            let begun = try await stage.ringback("supabase", "update-user", "app", "--email", "new@example.org")
            #expect(begun.status == 0, "\(begun)")
            let flow = try #require(try await stage.api("GET", "/v1/flows")["flows"]?.array?.last?["id"]?.string)
            let letters =
                try await stage.sandbox.request("GET", "/supabase/sandbox/mailbox").json["letters"]?.array ?? []
            let links = letters.suffix(2).compactMap { $0["link"]?.string }
            try #require(links.count == 2)
            for title in ["Confirmed", "Link of an older message"] {
                let page = try await stage.run("/usr/bin/curl", ["-sSL", links[0]])
                #expect(page.out.contains("<title>\(title)"), "\(page)")
                #expect(try await stage.api("GET", "/v1/flows/\(flow)")["status"] == "pending")
            }
            _ = try await stage.run("/usr/bin/curl", ["-sSL", links[1]])
            let now = try await stage.api("GET", "/v1/flows/\(flow)?wait=20")
            #expect(now["status"] == "completed", "\(now)")
            #expect(try await stage.account("app")["user"]?["email"] == "new@example.org")
        }
    }

    @Test func `update-user --phone takes the code of the message`() async throws {
        try await play { stage in
            let update = try stage.terminal("supabase", "update-user", "app", "--phone", "+4915112345678")
            try await update.shows("A message with a code was sent.")
            try await update.shows("sends another): ")
            update.type(try #require(try await codes(stage, "messages")["4915112345678"]))
            let ended = try await update.end()
            #expect(ended.status == 0 && ended.text.contains("Phone      +4915112345678"), "\(ended)")
        }
    }

    @Test func `a pending address change can be left, and ends with the session`() async throws {
        try await play { stage in
            let update = try stage.terminal("supabase", "update-user", "app", "--email", "new@example.org")
            try await update.shows("sends another): ")
            update.press([0x04])
            let ended = try await update.end()
            #expect(ended.status == 4 && ended.text.contains("ringback verify app"), "\(ended)")
            let early = try await stage.ringback("resend", "app")
            #expect(early.status == 5, "\(early)")
            // It stands in the way of no sign-in, and ends with the session.
            let other = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(other.status == 0, "\(other)")
            #expect(try await stage.ringback("logout", "app").status == 0)
            let none = try await stage.ringback("verify", "app", stdin: "123456\n")
            #expect(none.status == 1 && none.err.contains("is waiting for a code"), "\(none)")
        }
    }

    // MARK: Somebody who was nobody

    @Test func `an anonymous user gets an address and a password and keeps the subject`() async throws {
        try await Stage.playProject(Self.strict) { stage in
            #expect(try await stage.ringback("login", "app", "--method", "anonymous").status == 0)
            let subject = try await stage.account("app")["subject"]
            #expect(try await stage.ringback("supabase", "user", "app").out.contains("Anonymous  yes\n"))
            let update = try await stage.ringback(
                "supabase", "update-user", "app", "--email", "mira@example.org", "--password", stdin: "secret12\n")
            #expect(update.status == 0, "\(update)")
            let code = try await codes(stage)["mira@example.org"] ?? ""
            let verified = try await stage.ringback("verify", "app", stdin: "\(code)\n")
            #expect(verified.status == 0 && verified.out == "Confirmed: app is mira@example.org\n", "\(verified)")
            let account = try await stage.account("app")
            #expect(account["subject"] == subject && account["user"]?["is_anonymous"] == false)
            #expect(try await stage.ringback("logout", "app").status == 0)
            let login = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(login.status == 0, "\(login)")
            #expect(try await stage.account("app")["subject"] == subject)
        }
    }

    @Test func `an anonymous user gets a linked identity and keeps the subject`() async throws {
        try await Stage.playProject { stage in
            #expect(try await stage.ringback("login", "app", "--method", "anonymous").status == 0)
            let subject = try await stage.account("app")["subject"]
            let linked = try await stage.run(
                "ringback", ["supabase", "link", "app", "--with", "github"],
                environment: ["BROWSER": "curl -sSL -o /dev/null"])
            #expect(linked.status == 0, "\(linked)")
            let account = try await stage.account("app")
            #expect(account["subject"] == subject && account["user"]?["is_anonymous"] == false)
            #expect(account["user"]?["email"] == "alice@example.org")
        }
    }

    // MARK: ID tokens

    @Test func `the name that Apple sends once is stored only if the user has none`() async throws {
        try await Stage.playProject { stage in
            let token = try await stage.idToken()
            for (name, shown) in [("Mira Nordlys", "Mira Nordlys"), ("Somebody Else", "Mira Nordlys")] {
                let login = try await stage.ringback(
                    "login", "app", "--method", "id_token", "--with", "apple", "--data",
                    #"{"full_name":"\#(name)"}"#, stdin: "\(token)\na raw nonce\n")
                #expect(login.status == 0, "\(login)")
                #expect(try await stage.account("app")["user"]?["user_metadata"]?["full_name"]?.string == shown)
            }
            let other = try await stage.ringback(
                "login", "app", "--method", "id_token", "--with", "apple", "--data", #"{"role":"admin"}"#,
                stdin: "\(token)\na raw nonce\n")
            #expect(other.status == 64 && other.err.contains("full_name"), "\(other)")
        }
    }

    private static let upstream = """
        id_token_account = "idp"

        [accounts.idp]
        issuer = "{sandbox}/supabase"
        client_id = "ringback-demo"
        scopes = ["openid", "email"]

        """

    @Test func `login --from signs in with another account's ID token and opens the browser once`() async throws {
        try await Stage.playProject { stage in
            try stage.write(configuration: Stage.project + Self.upstream)
            #expect(try await stage.ringback("reload").status == 0)
            let arguments = ["login", "app", "--method", "id_token", "--with", "google", "--from", "idp"]
            let login = try await stage.run(
                "ringback", arguments, environment: ["BROWSER": "curl -sSL -o /dev/null"])
            #expect(login.status == 0 && login.out == "Signed in to app as alice@example.org\n", "\(login)")
            #expect(try await stage.account("idp")["state"] == "authenticated")
            try await stage.ringback("logout", "app")
            // Now the token is there: nothing is opened.
            let asked = try await stage.sandbox.counters(issuer: "/supabase").requests("authorize")
            let again = try await stage.run("ringback", arguments, environment: ["BROWSER": "false"])
            #expect(again.status == 0 && again.out == login.out, "\(again)")
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("authorize") == asked)
        }
    }

    @Test func `login --from names the account whose client is wrong`() async throws {
        try await Stage.playProject { stage in
            try stage.write(configuration: Stage.project + Self.upstream)
            #expect(try await stage.ringback("reload").status == 0)
            try await stage.sandbox.control(
                ["faults": [["endpoint": "token", "kind": "error", "error": "invalid_client", "status": 401]]],
                issuer: "/supabase")
            let login = try await stage.run(
                "ringback", ["login", "app", "--method", "id_token", "--with", "google", "--from", "idp"],
                environment: ["BROWSER": "curl -sSL -o /dev/null"])
            #expect(login.status != 0 && login.err.contains("To change it: ringback account edit idp"), "\(login)")
            #expect(login.err.contains("The sign-in of idp"), "\(login)")
        }
    }

    @Test func `a wrong id_token_account or token_issuer is rejected by config check`() async throws {
        try await Stage.playProject { stage in
            for (lines, words) in [
                ("id_token_account = \"nobody\"\n", "there is no account of this name"),
                ("id_token_account = \"app\"\n", "must name another account"),
                ("token_issuer = \"http://auth.example.org\"\n", "must be an https URL"),
            ] {
                try stage.write(configuration: Stage.project + lines)
                let check = try await stage.ringback("config", "check")
                #expect(check.status == 78 && "\(check.out)\(check.err)".contains(words), "\(check)")
            }
        }
    }

    // MARK: Whose the tokens are, and what is left

    @Test func `token_issuer accepts the tokens of a project with its own domain, and no others`() async throws {
        try await Stage.playProject(Self.strict) { stage in
            let mira: JSON = ["email": "mira@example.org", "password": "secret12"]
            try await stage.setProject(["users": [mira]])
            let arguments = ["login", "app", "--method", "password", "--email", "mira@example.org"]
            for (issuer, status) in [("https://auth.example.org/auth/v1", Int32(5)), ("{sandbox}/supabase/auth/v1", 0)]
            {
                try stage.write(configuration: Stage.project + "token_issuer = \"\(issuer)\"\n")
                #expect(try await stage.ringback("reload").status == 0)
                let login = try await stage.run("ringback", arguments, stdin: "secret12\n")
                #expect(login.status == status, "\(login)")
            }
        }
    }

    @Test func `a session with --no-persist is signed out at the project by lock and by the daemon's end`()
        async throws
    {
        try await Stage.playProject { stage in
            for (ending, count) in [("lock", 1), ("stop", 2)] {
                let login = try await stage.ringback("login", "app", "--method", "anonymous", "--no-persist")
                #expect(login.status == 0, "\(login)")
                if ending == "lock" {
                    #expect(try await stage.ringback("lock").status == 0)
                    try await stage.eventually("a sign-out at the project") {
                        try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == count
                    }
                    #expect(try await stage.ringback("unlock").status == 0)
                } else {
                    try await stage.stopDaemon()
                }
                #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_logout") == count)
            }
        }
    }
}
