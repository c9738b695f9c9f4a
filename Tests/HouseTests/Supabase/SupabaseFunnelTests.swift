// What an app at a Supabase project learns beside the session: the user's former identifier, what was linked, and the
// provider's own token.

import Glibc
import RingbackBase
import Testing

@Suite struct `An app at a project` {
    private func link(_ stage: Stage, _ more: [String] = []) async throws {
        let linked = try await stage.run(
            "ringback", ["supabase", "link", "app", "--with", "github"] + more,
            environment: ["BROWSER": "curl -sSL -o /dev/null"])
        #expect(linked.status == 0 && linked.out == "Linked github to app\n", "\(linked)")
    }

    @Test func `a linked identity is in the audit log, and scopes and parameters reach the provider`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            try await link(stage, ["--scopes", "repo gist", "--param", "prompt=consent"])
            try await stage.eventually("the line of the audit log") {
                let audit = try await stage.ringback("audit", "--json")
                return audit.out.split(separator: "\n").contains {
                    $0.contains(#""identity_linked""#) && $0.contains(#""identity_provider":"github""#)
                }
            }
            let asked = try await stage.sandbox.log(issuer: "/supabase").contains { request in
                let parameters = request["parameters"]
                return parameters?["scopes"] == "repo gist" && parameters?["prompt"] == "consent"
            }
            #expect(asked)
        }
    }

    @Test func `migrate-user shows the former identifier with the session until --done`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            let subject = try #require(try await stage.account("app")["subject"]?.string)
            // Twice: the same again changes nothing.
            for _ in 0..<2 {
                let noted = try await stage.ringback("migrate-user", "app", "--from", "legacy-7")
                #expect(noted.status == 0 && noted.out == "app: legacy-7 is \(subject) now.\n", "\(noted)")
                let session = try await stage.api("GET", "/v1/accounts/app/session")
                #expect(session["migration"] == ["from": "legacy-7", "to": .string(subject)])
                #expect(try await stage.account("app")["migration"]?["from"] == "legacy-7")
            }
            let route = "/v1/accounts/app/migration"
            #expect(try await stage.api("POST", route, ["from": "legacy-7"])["migration"]?["from"] == "legacy-7")
            for _ in 0..<2 {
                let done = try await stage.ringback("migrate-user", "app", "--done")
                #expect(done.status == 0 && done.out == "app has nothing to migrate.\n", "\(done)")
                #expect(try await stage.api("GET", "/v1/accounts/app/session")["migration"] == nil)
            }
            let answer = try await stage.api("DELETE", route)
            #expect(answer.status == 200 && answer["migration"] == nil, "\(answer)")
        }
    }

    @Test(arguments: [true, false])
    func `the upstream provider's token is shown only if the sign-in asked for it`(isAskedFor: Bool) async throws {
        try await Stage.playProject { stage in
            let login = try await stage.run(
                "ringback", ["login", "app", "--with", "github"] + (isAskedFor ? ["--provider-token"] : []),
                environment: ["BROWSER": "curl -sSL -o /dev/null"])
            #expect(login.status == 0, "\(login)")
            let session = try await stage.ringback(
                "session", "app", "--include", "provider_token", "--json", "--show-token")
            let document = try JSON(parsing: session.out.utf8)
            #expect((document["provider_token"]?.string?.isEmpty == false) == isAskedFor, "\(session.status)")
            let usual = try await stage.api("GET", "/v1/accounts/app/session")
            #expect(usual.status == 200 && usual["provider_token"] == nil)
            #expect(document["provider_refresh_token"] == nil)
        }
    }

    @Test func `a wrong identifier names the list to see, and a missing second factor the commands to run`()
        async throws
    {
        try await Stage.playProject { stage in
            try await stage.signUp()
            for (verb, list) in [("unlink", "identities"), ("remove-factor", "factors")] {
                let refused = try await stage.ringback("supabase", verb, "app", "x")
                #expect(
                    refused.status == 64 && refused.err.contains(". See: ringback supabase \(list) app"),
                    "\(refused)")
            }
            let nobodys = try await stage.ringback(
                "supabase", "remove-factor", "app", "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e")
            #expect(
                nobodys.status == 1 && nobodys.err.contains(". See: ringback supabase factors app"), "\(nobodys)")
            let factor = try await stage.api("POST", "/v1/accounts/app/factors", ["factor_type": "totp"])
            let path = "/v1/accounts/app/factors/\(factor["id"]?.string ?? "")"
            let challenge = try await stage.api("POST", "\(path)/challenge", [:])
            let code = Authenticator.code(factor["totp"]?["secret"]?.string ?? "")
            let proof: JSON = ["challenge_id": challenge["id"] ?? .null, "code": .string(code)]
            #expect(try await stage.api("POST", "\(path)/verify", proof).status == 200)
            try await stage.ringback("logout", "app")
            let login = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(login.status == 0, "\(login)")
            let refused = try await stage.ringback(
                "supabase", "update-user", "app", "--email", "new@example.org", "--no-wait")
            #expect(
                refused.status == 1
                    && refused.err.contains("ringback supabase verify-factor app, then repeat this command."),
                "\(refused)")
        }
    }
}

@Suite struct `What a sign-in is asked for` {
    @Test func `login --scopes and --param reach the authorization URL, and ringback cancel ends the sign-in`()
        async throws
    {
        try await Stage.play { stage in
            let login = try stage.start(
                "ringback",
                [
                    "login", "work", "--no-browser", "--scopes", "openid email", "--param", "prompt=consent",
                    "--param", "ui_locales=de=x",
                ])
            let url = try await login.line("the address")
            #expect(url.contains("prompt=consent") && url.contains("ui_locales=de%3Dx"), "\(url)")
            #expect(url.contains("scope=openid%20email&") || url.hasSuffix("scope=openid%20email"), "\(url)")
            let cancelled = try await stage.ringback("cancel", "work")
            #expect(
                cancelled.status == 0 && cancelled.out == "Cancelled: the pending sign-in to work\n", "\(cancelled)")
            #expect(try await login.end().status == 4)
            let again = try await stage.ringback("cancel", "work")
            #expect(again.status == 1 && again.err.contains("No sign-in of work is pending."), "\(again)")
            // One that nobody waits for any more, with all that is printed.
            let flow = try await stage.begin()
            let json = try await stage.ringback("cancel", flow.id, "--json")
            #expect(try JSON(parsing: json.out.utf8)["status"] == "cancelled", "\(json)")
        }
    }

    @Test
    func
        `login --method device sends scopes and parameters, and its flow can be cancelled after the client was killed`()
        async throws
    {
        try await Stage.play { stage in
            let login = try stage.start(
                "ringback", ["login", "work", "--method", "device", "--scopes", "openid", "--param", "hint=mira"])
            _ = try await login.errorLine("the code") { $0.hasPrefix("and enter the code:  ") }
            let asked = try await stage.sandbox.log().contains { request in
                request["parameters"]?["scope"] == "openid" && request["parameters"]?["hint"] == "mira"
            }
            #expect(asked)
            kill(login.pid, SIGKILL)
            _ = try await login.end()
            #expect(try await stage.account()["state"] == "authenticating")
            #expect(try await stage.ringback("cancel", "work").status == 0)
            #expect(try await stage.account()["state"] == "unauthenticated")
        }
    }
}
