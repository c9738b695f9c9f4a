import RingbackBase
import Testing

@Suite struct `ringback supabase` {
    @Test func `supabase user shows, and update-user changes, the user`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("supabase", "user", "app", status: 0, prints: "Email      mira@example.org\n")
            try await stage.ringback(
                "supabase", "update-user", "app", "--data", #"{"color":"blue"}"#, status: 0, prints: #""color":"blue""#)
            try await stage.ringback(
                "supabase", "update-user", "app", "--password", stdin: "short\n", status: 1, says: "too weak")
            let strong = try await stage.ringback(
                "supabase", "update-user", "app", "--password-fd", "0", "--json", stdin: "longer12\n", status: 0)
            #expect(try strong.json["user"]?["email"] == "mira@example.org")
            try await stage.ringback("logout", "app")
            try await stage.logIn(password: "longer12")
        }
    }

    @Test func `SK-27: terminal control characters in metadata are escaped in text and JSON`() async throws {
        try await Stage.playSignedUp { stage in
            let name = "A\u{9B}31mB\u{202E}C\u{85}D\u{200B}Я"
            let data = (["name": .string(name)] as JSON).text
            let verbs = [
                ["supabase", "update-user", "app", "--data", data, "--json"], ["supabase", "user", "app", "--json"],
                ["session", "app", "--json"], ["supabase", "user", "app"],
                ["token", "app", "--format", "json"], ["accounts", "--json"],
                ["refresh", "app", "--force"], ["claims", "app"], ["claims", "app", "--json"],
            ]
            for verb in verbs {
                let shown = try await stage.run("ringback", verb, stdin: nil, status: 0)
                let obeyed: Set<Unicode.Scalar> = ["\u{9B}", "\u{202E}", "\u{85}", "\u{200B}"]
                #expect(obeyed.isDisjoint(with: shown.out.unicodeScalars), "\(verb)")
            }
            let user = try JSON(parsing: try await stage.ringback("supabase", "user", "app", "--json").out.utf8)
            #expect(user["user"]?["user_metadata"]?["name"]?.string == name)
            let claims = try await stage.ringback("claims", "app").json
            #expect(claims["user_metadata"]?["name"]?.string == name && claims["role"] == "authenticated")
        }
    }

    @Test func `reset-password sets a new password on the terminal`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("logout", "app")
            let reset = try stage.terminal("supabase", "reset-password", "app", "--email", "mira@example.org")
            try await reset.shows("sends another): ")
            reset.type(try await stage.code())
            try await reset.shows("empty to choose it later): ")
            reset.type("longer12")
            try await reset.shows("Same again")
            reset.type("longer13")
            try await reset.shows("The two are not the same.")
            for question in ["empty to choose it later): ", "Same again"] {
                try await reset.shows(question)
                reset.type("longer12")
            }
            let ended = try await reset.end()
            #expect(ended.status == 0 && ended.text.contains("The password of app was changed."), "\(ended)")
            #expect(!ended.text.contains("longer1"))
            try await stage.ringback("logout", "app")
            try await stage.logIn(password: "longer12")
        }
    }

    private func withApp(_ stage: Stage) async throws -> String {
        try await stage.signUp()
        let path = "/v1/accounts/app/factors"
        let factor = try await stage.api("POST", path, ["factor_type": "totp"])
        let (id, secret) = (try #require(factor["id"]?.string), try #require(factor["totp"]?["secret"]?.string))
        let challenge = try await stage.api("POST", "\(path)/\(id)/challenge", [:])
        let proof: JSON = [
            "challenge_id": challenge["id"] ?? .null,
            "code": .string(Authenticator.code(secret)),
        ]
        #expect(try await stage.api("POST", "\(path)/\(id)/verify", proof).status == 200)
        try await stage.ringback("logout", "app")
        return secret
    }

    private func expectPassword(_ password: String, _ stage: Stage) async throws {
        try await stage.ringback(
            "login", "app", "--again", "--method", "password", "--email", "mira@example.org", stdin: "\(password)\n",
            status: 0)
    }

    @Test func `reset-password asks for the second factor before the new password`() async throws {
        try await Stage.playProject { stage in
            let secret = try await withApp(stage)
            let reset = try stage.terminal("supabase", "reset-password", "app", "--email", "mira@example.org")
            try await reset.shows("sends another): ")
            reset.type(try await stage.code())
            try await reset.shows("Code that the app shows")
            reset.type("000000")
            try await reset.shows("Invalid code.")
            reset.type(Authenticator.code(secret, steps: 1))
            for password in ["secret12", "longer12"] {
                for question in ["empty to choose it later): ", "Same again"] {
                    try await reset.shows(question)
                    reset.type(password)
                }
            }
            let ended = try await reset.end()
            #expect(ended.status == 0 && ended.text.contains("The password of app was changed."), "\(ended)")
            try await expectPassword("longer12", stage)
        }
    }

    @Test func `reset-password reads the second factor's code from standard input, or names commands`() async throws {
        try await Stage.playProject(["mail_interval": 0]) { stage in
            let secret = try await withApp(stage)
            /// Begins without input, so that the code of the mail is known.
            func reset(_ lines: String) async throws -> Output {
                try await stage.ringback(
                    "supabase", "reset-password", "app", "--email", "mira@example.org", stdin: "", status: 4)
                let code = try await stage.code()
                return try await stage.ringback(
                    "supabase", "reset-password", "app", "--email", "mira@example.org", stdin: "\(code)\n\(lines)")
            }
            let next = "ringback supabase verify-factor app, then ringback supabase update-user app --password"
            try await reset("longer12\n").expect(64, says: next)
            try await reset("").expect(0, says: "verify-factor app", "ringback supabase update-user app --password")
            try await reset("\(Authenticator.code(secret, steps: 1))\nlonger12\n").expect(
                0, out: "The password of app was changed.\n")
            try await expectPassword("longer12", stage)
        }
    }

    @Test func `ringback verify after a recovery names the command that sets the password`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("logout", "app")
            try await stage.ringback(
                "supabase", "reset-password", "app", "--email", "mira@example.org", stdin: "", status: 4)
            try await stage.ringback(
                "verify", "app", stdin: "000000\n", status: 1,
                says: "Invalid code. Please try again. For another one, run: ringback ")
            let verified = try await stage.ringback(
                "verify", "app", stdin: "\(try await stage.code())\n", status: 0,
                says: "ringback supabase update-user app --password")
            #expect(verified.out.hasPrefix("Signed in to app"), "\(verified)")
        }
    }

    @Test func `supabase link adds an identity, and unlink removes it`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback(
                "supabase", "link", "app", "--with", "github", environment: Browser.environment, status: 0,
                out: "Linked github to app\n")
            let list = try await stage.ringback("supabase", "identities", "app", "--json")
            let identities = try list.json["identities"]?.array ?? []
            #expect(identities.compactMap { $0["provider"]?.string }.sorted() == ["email", "github"])
            let id = identities.first { $0["provider"] == "github" }?["identity_id"]?.string ?? ""
            let unlinked = try await stage.ringback("supabase", "unlink", "app", id, status: 0)
            #expect(!unlinked.out.contains("github"), "\(unlinked)")
            try await stage.ringback(
                "supabase", "unlink", "app", identities.first?["identity_id"]?.string ?? "", status: 1)
        }
    }

    @Test func `supabase enroll adds a second factor, and a sign-in without it is shown as incomplete`() async throws {
        try await Stage.playSignedUp { stage in
            let enroll = try stage.terminal("supabase", "enroll", "app", "--name", "My phone")
            try await enroll.shows("Read this with the authenticator app:")
            try await enroll.shows("To type it instead:  ")
            try await enroll.shows("Code that the app shows (it is not shown): ")
            enroll.type("000000")
            try await enroll.shows("Invalid code. Please try again.")
            try await enroll.shows("(it is not shown): ")
            let secret = String(
                enroll.text.split(separator: "instead:  ").last?.prefix { $0.isLetter || $0.isNumber } ?? "")
            enroll.type(Authenticator.code(secret))
            let ended = try await enroll.end()
            #expect(ended.status == 0 && ended.text.contains("Added and verified"), "\(ended)")
            #expect(ended.text.contains("█▀▀▀▀▀█"))

            try await stage.ringback("logout", "app")
            try await stage.logIn(says: "ringback supabase verify-factor app")
            #expect(try await stage.ringback("accounts").out.contains("signed in (aal1, needs aal2)"))
            #expect(try await stage.ringback("session", "app").out.contains("Level      aal1, needs aal2\n"))
            try await stage.ringback(
                "supabase", "verify-factor", "app", stdin: "000000\n", status: 1, says: "Invalid code.")
            let code = Authenticator.code(secret, steps: 1)
            try await stage.ringback(
                "supabase", "verify-factor", "app", stdin: "\(code)\n", status: 0, out: "Verified: app, level aal2\n")
            #expect(try await stage.ringback("session", "app").out.contains("Level      aal2\n"))

            let list = try await stage.ringback("supabase", "factors", "app", "--json")
            let id = try list.json["factors"]?.array?.first?["id"]?.string ?? ""
            try await stage.ringback("supabase", "remove-factor", "app", id, status: 0, out: "Removed \(id)\n")
            try await stage.ringback(
                "supabase", "verify-factor", "app", stdin: "000000\n", status: 1, says: "ringback supabase enroll app")
        }
    }

    @Test func `supabase enroll after an unfinished one says what can be done with that`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("supabase", "enroll", "app", "--no-verify", status: 0)
            try await stage.ringback(
                "supabase", "enroll", "app", "--no-verify", status: 1, out: "",
                says: "ringback supabase verify-factor app", "ringback supabase remove-factor app", "--name NAME")
            try await stage.ringback("supabase", "enroll", "app", "--no-verify", "--name", "two", status: 0)
        }
    }

    @Test func `a number without a plus sign gets no message`() async throws {
        try await Stage.playProject { stage in
            try await stage.ringback(
                "login", "app", "--method", "otp", "--phone", "4155550155", status: 64, out: "",
                says: "with + and its country code")
            let sent = try await stage.sandbox.request("GET", "/supabase/sandbox/messages").json
            #expect(sent["letters"] == [])
        }
    }

    @Test func `supabase enroll --phone adds a phone, and a narrow terminal shows no QR code`() async throws {
        try await Stage.playSignedUp { stage in
            let narrow = try stage.terminal("supabase", "enroll", "app", "--no-verify", "--name", "one", columns: 30)
            let shown = try await narrow.end()
            #expect(
                shown.status == 0 && shown.text.contains("otpauth://totp/") && !shown.text.contains("█"), "\(shown)")
            let phone = try stage.start(
                "ringback", ["supabase", "enroll", "app", "--phone", "+4915112345678", "--no-verify", "--json"])
            let enrolment = try JSON(parsing: try await phone.end().out.utf8)
            #expect(enrolment["factor_type"] == "phone" && enrolment["phone"] == "+4915112345678")
            try await stage.ringback("supabase", "verify-factor", "app", stdin: "000000\n", status: 1, says: "name one")
            let proof = try stage.terminal("supabase", "verify-factor", "app", enrolment["id"]?.string ?? "")
            try await proof.shows("A code was sent to +4915112345678.")
            try await proof.shows("(it is not shown): ")
            proof.type(try await stage.code("messages"))
            let ended = try await proof.end()
            #expect(ended.status == 0 && ended.text.contains("Verified: app, level aal2"), "\(ended)")
        }
    }

    @Test func `supabase rpc calls only the functions that the account lists`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback(
                "supabase", "rpc", "app", "echo", #"{"a":1}"#, status: 0, out: "{\"a\":1}\n")
            let piped = try await stage.ringback("supabase", "rpc", "app", "echo", "-", "--json", stdin: #"{"b":[2]}"#)
            #expect(piped.out == "{\"result\":{\"b\":[2]}}\n", "\(piped)")
            try await stage.ringback(
                "supabase", "rpc", "app", "drop_everything", status: 64,
                says: "in the list rpc of the account app: echo")
            try await stage.ringback("logout", "app", "--scope", "others")
            #expect(try await stage.account("app")["state"] == "authenticated")
        }
    }

    @Test func `supabase invoke calls only the Edge Functions that the account lists, and says what they refuse`()
        async throws
    {
        try await Stage.playSignedUp { stage in
            try await stage.ringback("supabase", "invoke", "app", "echo", #"{"a":1}"#, status: 0, out: "{\"a\":1}\n")
            let nothing = try await stage.ringback("supabase", "invoke", "app", "nothing", "--json")
            #expect(nothing.out == "{\"result\":null}\n", "\(nothing)")
            try await stage.ringback("supabase", "invoke", "app", "say-hello", status: 0, out: "\"Hello!\\n\"\n")
            try await stage.ringback(
                "supabase", "invoke", "app", "fail", status: 1, out: "", says: "HTTP 422: The function has failed.")
            try await stage.ringback(
                "supabase", "invoke", "app", "other", status: 64,
                says: "the list edge_functions of the account app: echo, ")
            #expect(try await stage.account("app")["state"] == "authenticated")
        }
    }

    @Test func `NAT-29: supabase verbs and methods are refused for an OpenID Connect account`() async throws {
        try await Stage.playSignedIn { stage in
            try await stage.ringback("supabase", "user", "work", status: 1, out: "", says: "work")
            try await stage.ringback(
                "login", "work", "--method", "password", "--email", "alice@example.org", stdin: "x\n", status: 1,
                says: "has no sign-in method “password”")
            // Nothing is asked for what the account does not have.
            try await stage.ringback(
                "login", "work", "--method", "otp", status: 1, out: "", says: "has no sign-in method “otp”")
            try await stage.ringback(
                "login", "work", "--method", "password", status: 1, out: "", says: "has no sign-in method “password”")
        }
    }
}

@Suite struct `A mistake of usage at a project` {
    private static let mistakes: [([String], String)] = [
        (["login", "app", "--method", "pigeon"], "Please provide one of"),
        (["login", "app", "--method", "password"], "--email ADDRESS or --phone NUMBER"),
        (["login", "app", "--method", "otp", "--email", "a@b", "--phone", "1"], "--email ADDRESS or --phone NUMBER"),
        (["login", "app", "--method", "password", "--email", "a@b", "--domain", "b"], "--domain does not belong"),
        (["login", "app", "--email", "a@b"], "--email does not belong to --method browser"),
        (["login", "app", "--method", "sso"], "--domain DOMAIN or --provider-id ID"),
        (["login", "app", "--method", "magic_link"], "--email ADDRESS"),
        (["login", "app", "--method", "anonymous", "--data", "[1]"], "--data must be a JSON object"),
        (["login", "app", "--method", "otp", "--email", "a@b", "--channel", "sms"], "--channel belongs to --phone"),
        (
            ["login", "app", "--method", "otp", "--email", "a@b", "--code-fd=-1"],
            "A descriptor must be a number, 0 or more."
        ),
        (["login", "app", "--method", "password", "--email", "a@b", "--password", "secret"], "Unknown option"),
        (["login", "app", "--method", "anonymous", "--no-browser"], "--no-browser does not belong"),
        (["login", "app", "--method", "password", "--email", "a@b", "--scopes", "x"], "--scopes does not belong"),
        (["login", "app", "--param", "prompt"], "--param must be NAME=VALUE."),
        (["login", "app", "--param", "a=1", "--param", "a=2"], "--param must not name a parameter twice."),
        (["supabase", "link", "app", "--with", "google", "--id-token-fd", "0", "--scopes", "x"], "nothing to open"),
        (["verify", "app", "--code-fd", "0", "--token-hash-fd", "0"], "exclude each other"),
        (["supabase", "update-user", "app"], "Name what to change"),
        (["supabase", "update-user", "app", "--email", "a@b", "--nonce-fd", "0"], "belong to --password"),
        (["supabase", "link", "app"], "--with"),
        (["supabase", "link", "app", "--with", "google", "--nonce-fd", "0"], "belong to --id-token-fd"),
        (["supabase", "enroll", "app", "--no-verify", "--code-fd", "0"], "exclude each other"),
        (["supabase", "rpc", "app", "echo", "[]"], "The arguments must be a JSON object."),
        (["supabase", "invoke", "app", "echo", "[]"], "The arguments must be a JSON object."),
        (
            ["login", "app", "--method", "password", "--email", "a@b", "--credential-fd", "3"],
            "--credential-fd does not"
        ),
        (["login", "app", "--method", "passkey", "--email", "a@b"], "--email does not belong"),
        (["login", "app", "--method", "passkey", "--no-browser"], "--no-browser does not belong"),
        (["login", "app", "--method", "passkey", "--credential-fd=-1"], "A descriptor must be a number, 0 or more."),
        (["supabase", "register-passkey", "app", "--credential-fd=-1"], "A descriptor must be a number, 0 or more."),
        (
            ["supabase", "enroll", "app", "--webauthn", "--phone", "+4915112345678"],
            "--webauthn and --phone exclude each other"
        ),
        (["supabase", "enroll", "app", "--webauthn", "--code-fd", "3"], "--webauthn has no code"),
        (["supabase", "enroll", "app", "--credential-fd", "3"], "--credential-fd belongs to --webauthn"),
        (
            ["supabase", "enroll", "app", "--webauthn", "--no-verify", "--credential-fd", "3"],
            "--no-verify and --credential-fd exclude"
        ),
        (
            ["supabase", "enroll", "app", "--webauthn", "--credential-fd=-1"],
            "A descriptor must be a number, 0 or more."
        ),
        (["login", "app", "--method", "device", "--no-browser"], "does not belong to --method device"),
        (["login", "app", "--method", "device", "--callback-port", "8400"], "does not belong to --method device"),
        (["login", "app", "--method", "device", "--email", "a@example.org"], "does not belong to --method device"),
    ]

    @Test func `wrong options of login and supabase verbs are usage errors before any request`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (arguments, words) in `A mistake of usage at a project`.mistakes {
                try await stage.run("ringback", arguments, status: 64, out: "", says: words, "Usage: ringback")
            }
            for name in ["", String(repeating: "k", count: 121)] {
                try await stage.ringback(
                    "supabase", "rename-passkey", "app", "x", name, status: 64, out: "", says: "1 to 120 bytes")
            }
        }
    }

    @Test func `supabase verbs without a daemon end with status 2`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let verbs: [[String]] = [
                ["verify", "app"], ["resend", "app"], ["cancel", "app"], ["supabase", "user", "app"],
                ["supabase", "update-user", "app", "--email", "a@b"], ["supabase", "reauthenticate", "app"],
                ["supabase", "reset-password", "app", "--email", "a@b"], ["supabase", "identities", "app"],
                ["supabase", "link", "app", "--with", "google"], ["supabase", "unlink", "app", "x"],
                ["supabase", "factors", "app"], ["supabase", "enroll", "app"], ["supabase", "verify-factor", "app"],
                ["supabase", "remove-factor", "app", "x"], ["supabase", "rpc", "app", "f"],
                ["supabase", "invoke", "app", "f"],
                ["login", "app", "--method", "anonymous"], ["login", "app", "--method", "passkey"],
                ["supabase", "passkeys", "app"], ["supabase", "register-passkey", "app"],
                ["supabase", "rename-passkey", "app", "x", "y"], ["supabase", "remove-passkey", "app", "x"],
            ]
            for arguments in verbs {
                try await stage.run("ringback", arguments, status: 2, out: "")
            }
        }
    }
}
