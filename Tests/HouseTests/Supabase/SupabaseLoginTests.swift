import Glibc
import RingbackBase
import Testing

@Suite struct `ringback login at a Supabase project` {
    @Test func `login by password reads it from standard input or a descriptor alone`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("logout", "app", out: "Signed out of app\n")
            try await stage.logIn(
                password: "secret13", status: 1, out: "", says: "Wrong email, phone number or password.")
            // The end of a line is all that ends it: spaces belong to a password.
            try await stage.logIn(password: "", status: 4, says: "No password was read")
            try stage.write("secret12\nnot read\n", to: "\(stage.directory)/password")
            let script =
                "ringback login app --method password --email ' Mira@Example.org' --password-fd 3 --json 3<password"
            let right = try await stage.run(
                "/bin/sh", ["-c", "cd '\(stage.directory)' && \(script)"],
                environment: ["PATH": "\(Programs.directory):/usr/bin:/bin"], status: 0)
            #expect(right.lines.count == 1, "\(right)")
            #expect(try right.json["state"] == "authenticated")
            try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", "--password-fd", "99", status: 1,
                says: "Descriptor 99 cannot be read")
            #expect(try await !stage.sandbox.logText(issuer: "/supabase").contains("not read"))
        }
    }

    @Test func `login by sign-up waits for the confirmation by code or link`() async throws {
        try await Stage.playProject(["autoconfirm": false]) { stage in
            let arguments = ["login", "app", "--method", "sign_up", "--email", "mira@example.org", "--json"]
            // Nobody is there to be asked again: a wrong code ends it, and nothing stays pending.
            let wrong = try await stage.run(
                "ringback", arguments, stdin: "secret12\n000000\n", status: 1, says: "Invalid code. Please try again.")
            #expect(wrong.lines.count == 1, "\(wrong)")
            let flow = try wrong.json
            #expect(flow["waiting_for"] == "email_confirmation" && flow["user_message"] == "Check your email.")
            #expect(try await stage.api("GET", "/v1/flows/\(flow["id"]?.string ?? "")")["status"] == "cancelled")

            let login = try stage.start("ringback", arguments + ["--wait"], stdin: "secret12\n")
            _ = try await login.line("the flow")
            let link = try #require(try await stage.letter()["link"]?.string)
            _ = try await stage.run("/usr/bin/curl", ["-sSL", "-o", "/dev/null", link])
            let ended = try await login.end().expect(0)
            #expect(ended.lines.count == 2, "\(ended)")
            #expect(try JSON(parsing: (ended.lines.last ?? "").utf8)["user"]?["email"] == "mira@example.org")
        }
    }

    @Test func `login by a code can be finished by ringback verify on another terminal`() async throws {
        try await Stage.playProject { stage in
            let arguments = ["login", "app", "--method", "otp", "--phone", "+4915112345678", "--wait"]
            let login = try stage.start("ringback", arguments)
            _ = try await login.errorLine("what it waits for") { $0.contains("Waiting for the code") }
            try await stage.ringback("resend", "app", status: 5, says: "Try again in ")
            try await stage.ringback(
                "resend", "app", "--captcha-token-fd", "0", stdin: "\n", status: 4, says: "No CAPTCHA token was read")
            try await stage.ringback(
                "resend", "app", "--captcha-token-fd", "0", stdin: "proof\n", status: 5, says: "Try again in ")
            try await stage.ringback(
                "verify", "app", stdin: "000000\n", status: 1, says: "Invalid code. Please try again.")
            let right = try await stage.ringback(
                "verify", "app", stdin: "\(stage.code("messages"))\n", status: 0,
                out: "Signed in to app as +4915112345678\n")
            #expect(try await login.end().out == right.out)
            for verb in ["verify", "resend"] {
                try await stage.ringback(verb, "app", status: 1, says: "No sign-in for app is waiting for a code.")
            }
        }
    }

    @Test func `login by magic link can be finished with the hash of the link`() async throws {
        try await Stage.playProject { stage in
            try await stage.ringback(
                "login", "app", "--method", "magic_link", "--email", "nobody@example.org", "--no-create-user", status: 1
            )
            let login = try stage.start(
                "ringback", ["login", "app", "--method", "magic_link", "--email", "mira@example.org", "--wait"])
            try await stage.awaitCode()
            let hash = try #require(try await stage.letter()["token_hash"]?.string)
            let verified = try await stage.ringback(
                "verify", "app", "--token-hash-fd", "0", "--json", stdin: "\(hash)\n", status: 0)
            #expect(try verified.json["user"]?["email"] == "mira@example.org")
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `login by a provider's or an organization's page opens the browser`() async throws {
        try await Stage.playProject { stage in
            let browser = Browser.environment
            try await stage.ringback(
                "login", "app", "--with", "github", environment: browser, status: 0,
                out: "Signed in to app as alice@example.org\n")
            try await stage.ringback("logout", "app")
            try await stage.ringback(
                "login", "app", "--method", "sso", "--domain", "company.example", environment: browser, status: 0,
                out: "Signed in to app as alice@example.org\n")
            try await stage.ringback(
                "login", "app", "--with", "gitlab", "--no-browser", status: 1, out: "", says: "not available")
        }
    }

    @Test func `login takes the session of another program, and anonymous with --switch`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("logout", "app")
            let grant = try await stage.run(
                "/usr/bin/curl",
                [
                    "-sS", "-H", "apikey: sb_publishable_sandbox", "-H", "Content-Type: application/json", "-d",
                    "{\"email\":\"mira@example.org\",\"password\":\"secret12\"}",
                    "\(stage.sandbox.origin)/supabase/auth/v1/token?grant_type=password",
                ])
            let session = try grant.json
            let tokens = [session["access_token"]?.string ?? "", session["refresh_token"]?.string ?? ""]
            try await stage.ringback(
                "login", "app", "--method", "session", stdin: tokens.joined(separator: "\n"), status: 0,
                out: "Signed in to app as mira@example.org\n")
            try await stage.ringback(
                "login", "app", "--method", "anonymous", status: 1,
                says: "run: ringback login app --method=anonymous --switch\n")
            let nobody = try await stage.ringback("login", "app", "--method", "anonymous", "--switch")
            let subject = try await stage.account("app")["subject"]?.string
            #expect(nobody.status == 0 && nobody.out == "Signed in to app as \(subject ?? "")\n", "\(nobody)")
        }
    }

    @Test func `login by an ID token reads token and raw nonce from standard input`() async throws {
        try await Stage.playProject { stage in
            let token = try await stage.idToken()
            let arguments = ["login", "app", "--method", "id_token", "--with", "google"]
            try await stage.run("ringback", arguments, stdin: "\(token)\nanother nonce\n", status: 1, out: "")
            try await stage.run("ringback", arguments, stdin: "\(token)\n", status: 64, says: "allow_missing_nonce")
            // The name that Apple tells once is written to a person who has none, and to nobody else.
            for (provider, name, kept) in [
                ("google", "Alice Nordlys", "Alice"), ("apple", "Alice Nordlys", "Alice Nordlys"),
                ("apple", "Somebody Else", "Alice Nordlys"),
            ] {
                if provider == "google" || name == kept {
                    try await stage.setProject(["delete_users": ["alice@example.org"]])
                }
                try await stage.ringback(
                    "login", "app", "--method", "id_token", "--with", provider, "--data", "{\"full_name\":\"\(name)\"}",
                    stdin: "\(token)\na raw nonce\n", status: 0, out: "Signed in to app as alice@example.org\n")
                let person = try await stage.account("app")["user"]
                #expect(person?["user_metadata"]?["full_name"]?.string == kept, "\(provider)")
                try await stage.ringback("logout", "app")
            }

            // To a person who is signed in, the same token adds the provider's account.
            try await stage.setProject(["delete_users": ["alice@example.org"]])
            try await stage.signUp()
            try await stage.ringback(
                "supabase", "link", "app", "--with", "google", "--id-token-fd", "0", "--nonce-fd", "0",
                stdin: "\(token)\na raw nonce\n", status: 0, out: "Linked google to app\n")
            #expect(try await stage.ringback("supabase", "identities", "app").out.contains("google"))
        }
    }

    @Test func `login --no-persist leaves no session and no user in the vault`() async throws {
        try await Stage.playProject(["captcha": "right"]) { stage in
            let arguments = ["login", "app", "--method", "sign_up", "--email", "mira@example.org", "--no-persist"]
            try await stage.run("ringback", arguments, stdin: "secret12\n", status: 1)
            try await stage.run(
                "ringback", arguments + ["--captcha-token-fd", "0"], stdin: "secret12\nright\n", status: 0)
            try await stage.ringback("token", "app", status: 0)
            try await stage.stopDaemon()
            try await stage.startDaemon()
            try await stage.ringback("token", "app", status: 3)
            #expect(!FileTree.all(in: stage.state).contains { $0.hasSuffix(".people") })
        }
    }

    @Test func `sign-up on a terminal asks for the password twice and shows neither`() async throws {
        try await Stage.playProject { stage in
            let unequal = try stage.terminal("login", "app", "--method", "sign_up", "--email", "mira@example.org")
            try await unequal.shows("New password (it is not shown): ")
            unequal.type("secret12")
            try await unequal.shows("The same again: ")
            unequal.type("secret13")
            let refused = try await unequal.end()
            #expect(refused.status == 4 && refused.text.contains("The two are not the same."), "\(refused)")
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_signup") == 0)

            let equal = try stage.terminal("login", "app", "--method", "sign_up", "--email", "mira@example.org")
            for question in ["New password (it is not shown): ", "The same again: "] {
                try await equal.shows(question)
                equal.type("secret12")
            }
            let ended = try await equal.end()
            #expect(ended.status == 0 && ended.text.contains("Signed in to app as mira@example.org"), "\(ended)")
            #expect(!ended.text.contains("secret"))
        }
    }

    @Test func `login on a terminal asks for the code until it is right, and resends it at a word`() async throws {
        try await Stage.playProject(["autoconfirm": false]) { stage in
            let login = try stage.terminal("login", "app", "--method", "otp", "--phone", "+4915112345678")
            let question = "Code (it is not shown; “resend” sends another): "
            try await login.shows(question)
            login.type("12")
            try await login.shows("Invalid code. Please try again.")
            try await login.shows(question)
            login.type("000000")
            try await login.shows("Invalid code. Please try again.")
            try await login.shows(question)
            // Not within the minute, as the flow's `resend_after` says.
            login.type("resend")
            try await login.shows("A message was sent already. Please wait a minute")
            try await login.shows(question)
            let code = try await stage.code("messages")
            login.type("\(code.prefix(3)) \(code.suffix(3))")
            let ended = try await login.end()
            #expect(ended.status == 0 && ended.text.contains("Signed in to app as +4915112345678"), "\(ended)")
            #expect(!ended.text.contains(code.prefix(3) + " "))
        }
    }

    @Test func `login on a terminal ends when the link was opened, and cancels at the end of the input`() async throws {
        try await Stage.playProject { stage in
            let login = try stage.terminal("login", "app", "--method", "magic_link", "--email", "mira@example.org")
            try await login.shows("Its link finishes this too")
            let link = try #require(try await stage.letter()["link"]?.string)
            _ = try await stage.run("/usr/bin/curl", ["-sSL", "-o", "/dev/null", link])
            #expect(try await login.end().status == 0)

            for leave in [{ $0.press([0x04]) }, { $0.send(SIGINT) }] as [(TerminalProgram) -> Void] {
                let other = try stage.terminal("login", "app", "--method", "otp", "--email", "mira@example.org")
                try await other.shows("sends another): ")
                leave(other)
                let ended = try await other.end()
                #expect(ended.status == 4 && ended.text.contains("was cancelled"), "\(ended)")
                let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
                #expect(flows.allSatisfy { $0["status"] != "pending" })
            }
        }
    }
}
