import RingbackBase
import Testing

@Suite struct `A person of a Supabase project` {
    private static let strict: JSON = ["configuration": "B", "mail_interval": 0, "sms_interval": 0]

    private func play(_ test: (Stage) async throws -> Void) async throws {
        try await Stage.playProject(Self.strict) { stage in
            let mira: JSON = ["email": "mira@example.org", "password": "secret12"]
            try await stage.setProject(["users": [mira]])
            try await stage.logIn()
            try await test(stage)
        }
    }

    private func codes(_ stage: Stage, _ box: String = "mailbox") async throws -> [String: String] {
        let letters = try await stage.sandbox.request("GET", "/supabase/sandbox/\(box)").json["letters"]?.array ?? []
        let changes = letters.filter { $0["type"]?.string?.hasSuffix("_change") == true }
        return Dictionary(changes.map { ($0["to"]?.string ?? "", $0["code"]?.string ?? "") }) { $1 }
    }

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
            #expect(ended.status == 0 && ended.text.contains("Email      new@example.org"), "\(ended)")
            #expect(try await stage.account("app")["user"]?["email"] == "new@example.org")
            try await stage.ringback("refresh", "app", status: 0)
        }
    }

    @Test func `an address change is begun by one command and confirmed by two of ringback verify`() async throws {
        try await play { stage in
            try await stage.ringback(
                "supabase", "update-user", "app", "--email", "new@example.org", status: 0,
                prints: "new@example.org waits for its confirmation", says: "ringback verify app")
            let flow = try #require(try await stage.api("GET", "/v1/flows")["flows"]?.array?.last)
            #expect(flow["method"] == "update_user" && flow["waiting_for"] == "code")
            #expect(
                flow["awaiting"]?.array?.compactMap { $0["email"]?.string } == [
                    "new@example.org", "mira@example.org",
                ])
            let codes = try await codes(stage)
            try await stage.ringback(
                "verify", "app", stdin: "\(codes["new@example.org"] ?? "")\n", status: 0,
                out: "Confirmed in part: app\n")
            try await stage.ringback("verify", "app", stdin: "000000\n", status: 1, says: "Invalid code.")
            try await stage.ringback(
                "verify", "app", stdin: "\(codes["mira@example.org"] ?? "")\n", status: 0,
                out: "Confirmed: app is new@example.org\n")

            let both = try await stage.ringback(
                "supabase", "update-user", "app", "--email", "third@example.org", "--code-fd", "0", "--json", status: 4,
                says: "The change of app still waits")
            #expect(both.lines.count == 1, "\(both)")
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
            let links = letters.suffix(2).compactMap { $0["link"]?.string }
            try #require(links.count == 2)
            // The first one is opened twice: the second is awaited all the same.
            for (link, word) in zip([links[0]] + links, ["Confirmed", "Link of an older message", "Signed in"]) {
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

    @Test func `an anonymous user gets a linked identity and keeps the subject`() async throws {
        try await Stage.playProject { stage in
            try await stage.ringback("login", "app", "--method", "anonymous", status: 0)
            let subject = try await stage.account("app")["subject"]
            try await stage.ringback(
                "supabase", "link", "app", "--with", "github", environment: Browser.environment, status: 0)
            let account = try await stage.account("app")
            #expect(account["subject"] == subject && account["user"]?["is_anonymous"] == false)
            #expect(account["user"]?["email"] == "alice@example.org")
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
            try await stage.ringback("reload", status: 0)
            let arguments = ["login", "app", "--method", "id_token", "--with", "google", "--from", "idp"]
            let login = try await stage.run(
                "ringback", arguments, environment: Browser.environment, status: 0,
                out: "Signed in to app as alice@example.org\n")
            #expect(try await stage.account("idp")["state"] == "authenticated")
            try await stage.ringback("logout", "app")
            // Now the token is there: nothing is opened.
            let asked = try await stage.sandbox.counters(issuer: "/supabase").requests("authorize")
            try await stage.run("ringback", arguments, environment: ["BROWSER": "false"], status: 0, out: login.out)
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("authorize") == asked)
        }
    }
}
