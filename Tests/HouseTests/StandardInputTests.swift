// A script whose standard input is at its end, or closed, gets an answer at once, and is told how to go on. Nothing waits
// for a person who is not there.

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

    @Test(arguments: Emptiness.allCases)
    func `a verb that needs a secret sends nothing and names the ways to give one`(emptiness: Emptiness) async throws {
        try await Stage.playProject { stage in
            for (arguments, text) in Self.unread {
                let output = try await run(stage, arguments, emptiness)
                #expect(output.status == 4 && output.out.isEmpty, "\(arguments): \(output)")
                #expect(
                    output.err.contains(text) && output.err.contains("Nothing was sent."), "\(arguments): \(output)")
                #expect(output.err.contains("a line of standard input"), "\(arguments): \(output)")
            }
            let requests = try await stage.sandbox.log(issuer: "/supabase").filter {
                ["supabase_token", "supabase_signup"].contains($0["endpoint"]?.string)
            }
            #expect(requests.isEmpty, "\(requests)")
        }
    }

    private static let messages: [[String]] = [
        ["login", "app", "--method", "otp", "--email", "mira@example.org"],
        ["login", "app", "--method", "otp", "--phone", "+4915112345678"],
        ["login", "app", "--method", "magic_link", "--email", "mira@example.org"],
        ["supabase", "reset-password", "app", "--email", "mira@example.org"],
    ]

    @Test(arguments: Emptiness.allCases)
    func `a sign-in by a code ends at once, stays pending, and is finished as it says`(
        emptiness: Emptiness
    ) async throws {
        for arguments in Self.messages {
            try await Stage.playProject(["users": [["email": "mira@example.org", "password": "secret12"]]]) { stage in
                let output = try await run(stage, arguments, emptiness)
                #expect(output.status == 4 && output.out.isEmpty, "\(arguments): \(output)")
                #expect(output.err.contains("No code was read: standard input is at its end."), "\(output)")
                #expect(output.err.contains("To finish it, run: ringback verify app"), "\(output)")
                let box = arguments.contains("--phone") ? "messages" : "mailbox"
                let finished = try await stage.ringback("verify", "app", stdin: "\(try await stage.code(box))\n")
                #expect(finished.status == 0 && finished.out.hasPrefix("Signed in to app as "), "\(finished)")
            }
        }
    }

    @Test(arguments: Emptiness.allCases)
    func `verify, a second factor and a passkey end at once too`(emptiness: Emptiness) async throws {
        let settings: JSON = ["users": [["email": "mira@example.org", "password": "secret12"]], "passkeys": true]
        try await Stage.playProject(settings) { stage in
            let begun = try await run(stage, Self.messages[0], emptiness)
            #expect(begun.status == 4, "\(begun)")
            let verify = try await run(stage, ["verify", "app"], emptiness)
            #expect(verify.status == 4 && verify.err.contains("No code was read."), "\(verify)")
            let finished = try await stage.ringback("verify", "app", stdin: "\(try await stage.code())\n")
            #expect(finished.status == 0, "\(finished)")
            let enroll = try await run(stage, ["supabase", "enroll", "app", "--name", "one"], emptiness)
            #expect(
                enroll.status == 4
                    && enroll.err.contains("The factor waits to be verified: ringback supabase verify-factor app"),
                "\(enroll)")
            // The factor was made at the project.
            #expect(
                enroll.err.contains("The factor was not verified.") && !enroll.err.contains("Nothing was sent"),
                "\(enroll)")
            let factors = try await stage.ringback("supabase", "factors", "app")
            #expect(factors.status == 0 && factors.out.contains("one"), "\(factors)")
            let added = try await run(stage, ["supabase", "register-passkey", "app"], emptiness)
            #expect(added.status == 4 && added.err.contains("No credential was read."), "\(added)")
            #expect(added.err.contains("--credential-fd") && !added.err.contains("Nothing was sent"), "\(added)")
            #expect(try await stage.ringback("logout", "app").status == 0)
            let passkey = try await run(stage, ["login", "app", "--method", "passkey", "--timeout", "60"], emptiness)
            #expect(passkey.status == 4 && passkey.err.contains("No credential was read."), "\(passkey)")
            #expect(passkey.err.contains("was cancelled. A credential is JSON on standard input"), "\(passkey)")
            #expect(passkey.err.contains("--credential-fd"), "\(passkey)")
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(!flows.contains { $0["status"] == "pending" }, "\(flows)")
        }
    }

    @Test(arguments: Emptiness.allCases)
    func `a passphrase that is missing is asked for in words`(emptiness: Emptiness) async throws {
        try await Stage.play("[vault]\nkey_source = \"passphrase\"\n") { stage in
            for verb in [["unlock"], ["vault", "rekey", "--key-source", "passphrase"]] {
                let output = try await run(stage, verb, emptiness)
                #expect(output.status == 4 && output.out.isEmpty, "\(verb): \(output)")
                #expect(output.err.contains("No passphrase was read."), "\(verb): \(output)")
                #expect(output.err.contains("the first line of standard input"), "\(verb): \(output)")
            }
            #expect(try await stage.api("GET", "/v1/status")["vault"]?["locked"] == true)
        }
    }

    @Test func `other verbs that read it end with a mistake of usage, or as if nobody had agreed`() async throws {
        try await Stage.play { stage in
            for emptiness in Emptiness.allCases {
                let complete = try await run(stage, ["complete"], emptiness)
                #expect(complete.status == 64, "\(complete)")
                // vi would wait for ever.
                try stage.write(
                    "#!/bin/sh\ntouch '\(stage.directory)/vi'\n", to: "\(stage.directory)/bin/vi", mode: 0o700)
                let edit = try await run(stage, ["account", "edit", "work"], emptiness)
                #expect(edit.status == 64 && edit.err.contains(stage.configuration), "\(edit)")
                #expect(edit.err.contains("Set EDITOR") && edit.out.isEmpty, "\(edit)")
                #expect(FileTree.text(of: "\(stage.directory)/vi") == nil)
            }
        }
    }

    @Test func `a closed standard output is a failure`() async throws {
        try await Stage.play { stage in
            let output = try await stage.run(
                "/bin/sh", ["-c", "exec \"$0\" status >&-", Programs.path("ringback")])
            #expect(output.status == 1 && output.err.contains("the output cannot be written"), "\(output)")
        }
    }
}
