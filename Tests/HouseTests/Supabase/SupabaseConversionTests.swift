// Somebody who was nobody becomes a person, step by step and by the command line alone: the subject stays, and the
// session, the account and the token say so at every step.

import RingbackBase
import Testing

@Suite struct `An anonymous person` {
    /// What the account, the session and the access token say of anonymity; they agree.
    private func isAnonymous(_ stage: Stage) async throws -> Bool {
        // First: a daemon that has just been started may not have loaded it before.
        let session = try await stage.ringback("session", "app", "--json")
        let user = try JSON(parsing: session.out.utf8)["user"]
        let account = try await stage.account("app")["user"]?["is_anonymous"]?.bool
        let token = try await stage.ringback("token", "app").out
        let parts = token.split(separator: ".")
        let claims = try JSON(parsing: try #require(parts.count == 3 ? Base64URL.decode(String(parts[1])) : nil))
        let claim = claims["is_anonymous"]?.bool
        let said = [account, user?["is_anonymous"]?.bool, claim]
        #expect(Set(said).count == 1, "\(said)")
        return try #require(claim as Bool?)
    }

    private func subject(_ stage: Stage) async throws -> String {
        let account = try await stage.account("app")
        return try #require(account["subject"]?.string)
    }

    @Test func `becomes a full one by an address, its confirmation and a password`() async throws {
        try await Stage.playProject(["configuration": "B", "mail_interval": 0]) { stage in
            let login = try await stage.ringback("login", "app", "--method", "anonymous")
            let subject = try await subject(stage)
            #expect(login.status == 0 && login.out == "Signed in to app as \(subject)\n", "\(login)")
            #expect(try await isAnonymous(stage))
            #expect(try await stage.ringback("supabase", "user", "app").out.contains("Anonymous  yes\n"))

            // A password of nobody's opens nothing: the project wants an address first.
            let early = try await stage.ringback("supabase", "update-user", "app", "--password", stdin: "secret12\n")
            #expect(early.status == 1 && early.out.isEmpty, "\(early)")

            let address = try await stage.ringback(
                "supabase", "update-user", "app", "--email", "Mira@Example.org", "--no-wait")
            #expect(address.status == 0, "\(address)")
            #expect(try await isAnonymous(stage))
            let wrong = try await stage.ringback("verify", "app", stdin: "000000\n")
            #expect(wrong.status == 1 && wrong.err.contains("Invalid code."), "\(wrong)")
            #expect(try await isAnonymous(stage))
            let letter = try await stage.letter()
            #expect(letter["to"] == "mira@example.org" || letter["email"] == "mira@example.org", "\(letter)")
            let confirmed = try await stage.ringback("verify", "app", stdin: "\(try await stage.code())\n")
            #expect(confirmed.status == 0 && confirmed.out == "Confirmed: app is mira@example.org\n", "\(confirmed)")
            #expect(try await !isAnonymous(stage))
            #expect(try await !stage.ringback("supabase", "user", "app").out.contains("Anonymous"))

            let password = try await stage.ringback("supabase", "update-user", "app", "--password", stdin: "secret12\n")
            #expect(password.status == 0, "\(password)")
            try await expectPersists(stage, subject)
            #expect(try await stage.ringback("logout", "app").status == 0)
            let again = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
            #expect(again.status == 0 && again.out == "Signed in to app as mira@example.org\n", "\(again)")
            #expect(try await self.subject(stage) == subject)
            #expect(try await !isAnonymous(stage))
        }
    }

    /// The same person after a refresh and after a restart.
    private func expectPersists(_ stage: Stage, _ subject: String) async throws {
        #expect(try await stage.ringback("refresh", "app", "--force").status == 0)
        #expect(try await !isAnonymous(stage))
        try await stage.stopDaemon()
        try await stage.startDaemon()
        #expect(try await !isAnonymous(stage))
        #expect(try await self.subject(stage) == subject)
    }

    @Test func `becomes a full one by a provider's account`() async throws {
        try await Stage.playProject { stage in
            #expect(try await stage.ringback("login", "app", "--method", "anonymous").status == 0)
            let subject = try await subject(stage)
            #expect(try await isAnonymous(stage))
            let browser = ["BROWSER": "curl -sSL -o /dev/null"]
            let linked = try await stage.run(
                "ringback", ["supabase", "link", "app", "--with", "github"], environment: browser)
            #expect(linked.status == 0 && linked.out == "Linked github to app\n", "\(linked)")
            #expect(try await self.subject(stage) == subject)
            #expect(try await !isAnonymous(stage))
            try await expectPersists(stage, subject)
            // The provider's page leads to the same person from now on.
            #expect(try await stage.ringback("logout", "app").status == 0)
            let login = try await stage.run("ringback", ["login", "app", "--with", "github"], environment: browser)
            #expect(login.status == 0 && login.out == "Signed in to app as alice@example.org\n", "\(login)")
            #expect(try await self.subject(stage) == subject)
        }
    }
}
