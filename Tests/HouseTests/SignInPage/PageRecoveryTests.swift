import RingbackBase
import Testing

/// What the page does with a forgotten password, and with what is typed into a form that no step takes any more.
@Suite struct `After a forgotten password the page` {
    private let mail = ("email", "mira@example.org")

    /// A user with a password, and with a phone as second factor if wanted, signed out again. Returns the factor's id.
    @discardableResult
    private func withUser(_ stage: Stage, hasFactor: Bool = false) async throws -> String {
        try await stage.signUp()
        var id = ""
        if hasFactor {
            let path = "/v1/accounts/app/factors"
            let body: JSON = ["factor_type": "phone", "phone": "+4915112345678"]
            id = try #require(try await stage.api("POST", path, body)["id"]?.string)
            let challenge = try await stage.api("POST", "\(path)/\(id)/challenge", [:])
            let code = try await stage.code("messages")
            let proof: JSON = ["challenge_id": challenge["id"] ?? .null, "code": .string(code)]
            #expect(try await stage.api("POST", "\(path)/\(id)/verify", proof).status == 200)
            try await stage.setProject(["sms_interval": 0])
        }
        try await stage.ringback("logout", "app")
        return id
    }

    private func asked(_ stage: Stage, _ action: String = "forgotten") async throws -> PageBrowser {
        var (browser, _) = try await PageBrowser.begin(stage)
        try await browser.load("/\(action)")
        try await browser.send(action, [mail])
        #expect(browser.heading == "Enter the code", "\(browser.answer)")
        return browser
    }

    private func verifyFactor(_ browser: inout PageBrowser, _ id: String, _ stage: Stage) async throws {
        #expect(browser.heading == "Second factor", "\(browser.answer)")
        try await browser.send("challenge", [("factor", id)])
        try await browser.send("factor", [("factor", id), ("code", try await stage.code("messages"))])
    }

    /// The tab that the mail's link opens. It has no cookie of the page.
    private func tab(_ stage: Stage) async throws -> PageBrowser {
        let link = try #require(try await stage.letter()["link"]?.string)
        let location = try #require(try await Browser.load(LocalURL(link)).location)
        let answer = try await Browser.load(LocalURL(location))
        let entry = try #require(answer.location)
        #expect(answer.status == 303 && entry.contains("/enter/"), "\(answer)")
        return try await PageBrowser(entering: entry)
    }

    private func choose(_ password: String, _ browser: inout PageBrowser, _ stage: Stage) async throws {
        #expect(browser.heading == "New password", "\(browser.answer)")
        try await browser.send("new_password", [("password", password)])
        #expect(browser.heading == "Signed in", "\(browser.answer)")
        try await expectPassword(password, stage)
    }

    private func expectPassword(_ password: String, _ stage: Stage) async throws {
        try await stage.ringback(
            "login", "app", "--again", "--method", "password", "--email", "mira@example.org", stdin: "\(password)\n",
            status: 0)
    }

    @Test func `a recovery asks for the new password after code, refresh and second factor`() async throws {
        try await Stage.playProject { stage in
            let factor = try await withUser(stage, hasFactor: true)
            var browser = try await asked(stage)
            try await browser.send("code", [("code", try await stage.code())])
            try await stage.ringback("refresh", "app", status: 0)
            try await verifyFactor(&browser, factor, stage)
            try await stage.ringback("refresh", "app", status: 0)
            try await choose("another34", &browser, stage)
        }
    }

    @Test func `a recovery continues in the tab that the mail's link opens`() async throws {
        try await Stage.playProject { stage in
            let factor = try await withUser(stage, hasFactor: true)
            let login = try stage.start("ringback", ["login", "app", "--page", "--no-browser"])
            let start = try await login.line("the start address", where: { $0.hasPrefix("http://127.0.0.1:") })
            var first = try await PageBrowser(opening: start)
            try await first.send("forgotten", [mail])
            var second = try await tab(stage)
            try await login.end().expect(0, says: "supabase update-user app --password")
            try await verifyFactor(&second, factor, stage)
            try await first.load("/code")
            #expect(first.heading == "New password", "\(first.answer)")
            try await choose("another34", &second, stage)
        }
    }

    @Test func `a mailed link leads to the second factor in its own tab`() async throws {
        try await Stage.playProject { stage in
            let factor = try await withUser(stage, hasFactor: true)
            _ = try await asked(stage, "mail")
            var second = try await tab(stage)
            try await verifyFactor(&second, factor, stage)
            #expect(second.heading == "Signed in", "\(second.answer)")
            #expect(try await stage.account("app")["aal"] == "aal2")
        }
    }

    @Test func `a new password that needs the second factor asks for it again`() async throws {
        try await Stage.playProject { stage in
            let factor = try await withUser(stage, hasFactor: true)
            var browser = try await asked(stage)
            try await browser.send("code", [("code", try await stage.code())])
            try await browser.send("skip")
            try await browser.send("new_password", [("password", "another34")])
            #expect(browser.answer.text.contains("role=\"alert\">Please confirm with your second factor first."))
            try await verifyFactor(&browser, factor, stage)
            try await choose("another34", &browser, stage)
        }
    }

    @Test func `the page says that a code was not used after the link`() async throws {
        try await Stage.playProject { stage in
            try await withUser(stage)
            for action in ["mail", "forgotten"] {
                var first = try await asked(stage, action)
                let code = try await stage.code()
                let link = try #require(try await stage.letter()["link"]?.string)
                let location = try #require(try await Browser.load(LocalURL(link)).location)
                #expect(try await Browser.load(LocalURL(location)).status == 303)
                try await first.send("code", [("code", code)])
                let step = action == "mail" ? "Your last entry was not used" : "New password"
                #expect(first.heading == step, "\(first.answer)")
                #expect(first.answer.text.contains("What you entered last was not used"), "\(first.answer)")
                try await stage.setProject(["mail_interval": 0])
                try await stage.ringback("logout", "app")
            }
        }
    }

    @Test func `the page says that the new password was not saved if the session has ended`() async throws {
        try await Stage.playProject { stage in
            try await withUser(stage)
            var browser = try await asked(stage)
            try await browser.send("code", [("code", try await stage.code())])
            #expect(browser.heading == "New password", "\(browser.answer)")
            try await stage.ringback("logout", "app")
            try await browser.send("new_password", [("password", "another34")])
            #expect(browser.heading == "Your last entry was not used", "\(browser.answer)")
            #expect(!browser.answer.text.contains("Signed in") && browser.answer.text.contains("was not saved"))
            try await expectPassword("secret12", stage)
        }
    }

    @Test func `a form that is sent twice is performed once`() async throws {
        try await Stage.playProject { stage in
            try await withUser(stage)
            var browser = try await asked(stage)
            try await browser.send("code", [("code", try await stage.code())])
            let form = browser.form("new_password", [("password", "another34")])
            let other = browser.form("new_password", [("password", "third567")])
            let posting = browser
            async let first = posting.post(form)
            async let second = posting.post(form)
            let statuses = try await [first.status, second.status]
            #expect(statuses == [303, 303])
            try await browser.load("/")
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            #expect(try await browser.post(other).status == 303)
            try await browser.load("/")
            #expect(browser.heading == "Your last entry was not used", "\(browser.answer)")
            try await expectPassword("another34", stage)
        }
    }
}
