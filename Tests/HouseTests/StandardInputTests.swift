import RingbackBase
import Testing

@Suite struct `With nothing on standard input` {
    /// How a script can leave nothing to read: an empty input, or none at all.
    enum Emptiness: String, CaseIterable, Sendable {
        case atItsEnd = "</dev/null"
        case closed = "<&-"
    }

    private func run(_ stage: Stage, _ arguments: [String], _ emptiness: Emptiness) async throws -> Output {
        // Much less than a flow's time, and less than the test's own bound.
        try await stage.run(
            "/bin/sh", ["-c", "exec \"$0\" \"$@\" \(emptiness.rawValue)", Programs.path("ringback")] + arguments)
    }

    private static let unread: [([String], String)] = [
        (["login", "app", "--method", "password", "--email", "mira@example.org"], "No password was read."),
        (["login", "app", "--method", "sign_up", "--email", "mira@example.org"], "No new password was read."),
        (["login", "app", "--method", "id_token", "--with", "google"], "No ID token was read."),
        (["login", "app", "--method", "session"], "No access token was read."),
        (["supabase", "update-user", "app", "--password"], "No new password was read."),
    ]

    @Test func `a verb that needs a secret sends nothing and names the ways to give one`() async throws {
        try await Stage.playProject { stage in
            for emptiness in Emptiness.allCases {
                for (arguments, text) in Self.unread {
                    try await run(stage, arguments, emptiness).expect(
                        4, out: "", says: text, "Nothing was sent.", "a line of standard input")
                }
                let requests = try await stage.sandbox.log(issuer: "/supabase").filter {
                    ["supabase_token", "supabase_signup"].contains($0["endpoint"]?.string)
                }
                #expect(requests.isEmpty, "\(requests)")
            }
        }
    }

    private static let messages: [[String]] = [
        ["login", "app", "--method", "otp", "--email", "mira@example.org"],
        ["login", "app", "--method", "otp", "--phone", "+4915112345678"],
        ["login", "app", "--method", "magic_link", "--email", "mira@example.org"],
        ["supabase", "reset-password", "app", "--email", "mira@example.org"],
    ]

    @Test func `a sign-in by a code ends at once, stays pending, and is finished as it says`() async throws {
        let settings: JSON = [
            "users": [["email": "mira@example.org", "password": "secret12"]], "mail_interval": 0, "sms_interval": 0,
        ]
        try await Stage.playProject(settings) { stage in
            for (arguments, emptiness) in Self.messages.flatMap({ line in Emptiness.allCases.map { (line, $0) } }) {
                try await run(stage, arguments, emptiness).expect(
                    4, out: "", says: "No code was read: standard input is at its end.",
                    "To finish it, run: ringback verify app")
                let box = arguments.contains("--phone") ? "messages" : "mailbox"
                let finished = try await stage.ringback(
                    "verify", "app", stdin: "\(try await stage.code(box))\n", status: 0)
                #expect(finished.out.hasPrefix("Signed in to app as "), "\(finished)")
                try await stage.ringback("logout", "app", status: 0)
            }
        }
    }

    @Test func `verify, a second factor and a passkey end at once too`() async throws {
        let emptiness = Emptiness.closed
        let settings: JSON = ["users": [["email": "mira@example.org", "password": "secret12"]], "passkeys": true]
        try await Stage.playProject(settings) { stage in
            try await run(stage, Self.messages[0], emptiness).expect(4)
            try await run(stage, ["verify", "app"], emptiness).expect(4, says: "No code was read.")
            try await stage.ringback("verify", "app", stdin: "\(try await stage.code())\n", status: 0)
            let enroll = try await run(stage, ["supabase", "enroll", "app", "--name", "one"], emptiness).expect(
                4, says: "The factor waits to be verified: ringback supabase verify-factor app")
            // The factor was made at the project.
            #expect(
                enroll.err.contains("The factor was not verified.") && !enroll.err.contains("Nothing was sent"),
                "\(enroll)")
            try await stage.ringback("supabase", "factors", "app", status: 0, prints: "one")
            let added = try await run(stage, ["supabase", "register-passkey", "app"], emptiness).expect(
                4, says: "No credential was read.", "--credential-fd")
            #expect(!added.err.contains("Nothing was sent"), "\(added)")
            try await stage.ringback("logout", "app", status: 0)
            try await run(stage, ["login", "app", "--method", "passkey", "--timeout", "60"], emptiness).expect(
                4, says: "No credential was read.", "was cancelled. A credential is JSON on standard input",
                "--credential-fd")
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(!flows.contains { $0["status"] == "pending" }, "\(flows)")
        }
    }

    @Test func `a passphrase that is missing is asked for in words`() async throws {
        try await Stage.play("[vault]\nkey_source = \"passphrase\"\n") { stage in
            for emptiness in Emptiness.allCases {
                for verb in [["unlock"], ["vault", "rekey", "--key-source", "passphrase"]] {
                    try await run(stage, verb, emptiness).expect(
                        4, out: "", says: "No passphrase was read.", "the first line of standard input")
                }
                #expect(try await stage.api("GET", "/v1/status")["vault"]?["locked"] == true)
            }
        }
    }

    @Test func `other verbs that read it end with a mistake of usage, or as if nobody had agreed`() async throws {
        try await Stage.play { stage in
            for emptiness in Emptiness.allCases {
                try await run(stage, ["complete"], emptiness).expect(64)
                // vi would wait for ever.
                try stage.write(
                    "#!/bin/sh\ntouch '\(stage.directory)/vi'\n", to: "\(stage.directory)/bin/vi", mode: 0o700)
                try await run(stage, ["account", "edit", "work"], emptiness).expect(
                    64, out: "", says: stage.configuration, "Set EDITOR")
                #expect(FileTree.text(of: "\(stage.directory)/vi") == nil)
            }
        }
    }

    @Test func `a closed standard output is a failure`() async throws {
        try await Stage.play { stage in
            try await stage.run(
                "/bin/sh", ["-c", "exec \"$0\" status >&-", Programs.path("ringback")], status: 1,
                says: "the output cannot be written")
        }
    }
}
