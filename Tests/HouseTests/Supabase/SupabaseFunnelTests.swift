import Glibc
import RingbackBase
import Testing

@Suite struct `An app at a project` {
    private func link(_ stage: Stage, _ more: [String] = []) async throws {
        try await stage.run(
            "ringback", ["supabase", "link", "app", "--with", "github"] + more, environment: Browser.environment,
            status: 0, out: "Linked github to app\n")
    }

    @Test func `migrate-user shows the former identifier with the session until --done`() async throws {
        try await Stage.playSignedUp { stage in
            let subject = try #require(try await stage.account("app")["subject"]?.string)
            // Twice: the same again changes nothing.
            for _ in 0..<2 {
                try await stage.ringback(
                    "migrate-user", "app", "--from", "legacy-7", status: 0, out: "app: legacy-7 is \(subject) now.\n")
                let session = try await stage.api("GET", "/v1/accounts/app/session")
                #expect(session["migration"] == ["from": "legacy-7", "to": .string(subject)])
                #expect(try await stage.account("app")["migration"]?["from"] == "legacy-7")
            }
            let route = "/v1/accounts/app/migration"
            #expect(try await stage.api("POST", route, ["from": "legacy-7"])["migration"]?["from"] == "legacy-7")
            for _ in 0..<2 {
                try await stage.ringback(
                    "migrate-user", "app", "--done", status: 0, out: "app has nothing to migrate.\n")
                #expect(try await stage.api("GET", "/v1/accounts/app/session")["migration"] == nil)
            }
            let answer = try await stage.api("DELETE", route, status: 200)
            #expect(answer["migration"] == nil, "\(answer)")
        }
    }

    @Test func `the upstream provider's token is shown only if the sign-in asked for it`() async throws {
        try await Stage.playProject { stage in
            for isAskedFor in [false, true] {
                try await stage.run(
                    "ringback", ["login", "app", "--with", "github"] + (isAskedFor ? ["--provider-token"] : []),
                    environment: Browser.environment, status: 0)
                let session = try await stage.ringback(
                    "session", "app", "--include", "provider_token", "--json", "--show-token")
                let document = try session.json
                #expect((document["provider_token"]?.string?.isEmpty == false) == isAskedFor, "\(session.status)")
                let usual = try await stage.api("GET", "/v1/accounts/app/session", status: 200)
                #expect(usual["provider_token"] == nil)
                #expect(document["provider_refresh_token"] == nil)
                try await stage.ringback("logout", "app", status: 0)
            }
        }
    }

    @Test func `a wrong identifier names the list to see, a missing second factor the commands`() async throws {
        try await Stage.playSignedUp { stage in
            for (verb, list) in [("unlink", "identities"), ("remove-factor", "factors")] {
                try await stage.ringback(
                    "supabase", verb, "app", "x", status: 64, says: ". See: ringback supabase \(list) app")
            }
            try await stage.ringback(
                "supabase", "remove-factor", "app", "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e", status: 1,
                says: ". See: ringback supabase factors app")
            let factor = try await stage.api("POST", "/v1/accounts/app/factors", ["factor_type": "totp"])
            let path = "/v1/accounts/app/factors/\(factor["id"]?.string ?? "")"
            let challenge = try await stage.api("POST", "\(path)/challenge", [:])
            let code = Authenticator.code(factor["totp"]?["secret"]?.string ?? "")
            let proof: JSON = ["challenge_id": challenge["id"] ?? .null, "code": .string(code)]
            #expect(try await stage.api("POST", "\(path)/verify", proof).status == 200)
            try await stage.ringback("logout", "app")
            try await stage.logIn()
            try await stage.ringback(
                "supabase", "update-user", "app", "--email", "new@example.org", "--no-wait", status: 1,
                says: "ringback supabase verify-factor app, then repeat this command.")
        }
    }
}

@Suite struct `What a sign-in is asked for` {
    @Test func `login --scopes and --param reach the authorization URL, and cancel ends the sign-in`() async throws {
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
            try await stage.ringback(
                "cancel", "work", status: 0, out: "Cancelled: the pending sign-in to work\n")
            #expect(try await login.end().status == 4)
            try await stage.ringback("cancel", "work", status: 1, says: "No sign-in of work is pending.")
            // One that nobody waits for any more, with all that is printed.
            let flow = try await stage.begin()
            let json = try await stage.ringback("cancel", flow.id, "--json")
            #expect(try json.json["status"] == "cancelled", "\(json)")
        }
    }
}
