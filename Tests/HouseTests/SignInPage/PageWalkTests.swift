import RingbackBase
import Testing

/// What a user does on Ringback's own page for a Supabase project.
@Suite struct `The sign-in page` {
    private let mail = ("email", "mira@example.org")

    private func withUser(_ stage: Stage) async throws {
        try await stage.signUp()
        try await stage.ringback("logout", "app", status: 0)
    }

    private func expectSignedIn(_ stage: Stage, _ email: String = "mira@example.org") async throws {
        let account = try await stage.account("app")
        #expect(account["state"]?.string == "authenticated", "\(account)")
        #expect(account["user"]?["email"]?.string == email, "\(account)")
    }

    @Test func `the sign-in page takes a password, names a wrong one and keeps none`() async throws {
        try await Stage.playProject { stage in
            try await withUser(stage)
            var (browser, flow) = try await PageBrowser.begin(stage)
            #expect(flow["waiting_for"] == "page" && flow["authorization_url"] == nil, "\(flow)")
            #expect(browser.heading == "Sign in" && browser.answer.status == 200, "\(browser.answer)")
            let words = try #require(flow["words"]?.string)
            #expect(browser.answer.text.contains("<b>\(words)</b>"), "\(browser.answer)")
            try await browser.send("password", [mail, ("password", "wrong-password-1")])
            let text = browser.answer.text
            #expect(text.contains("id=\"password-wrong\">Wrong email, phone number or password"), "\(text)")
            #expect(text.contains("value=\"mira@example.org\"") && !text.contains("wrong-password-1"), "\(text)")
            try await browser.send("password", [mail, ("password", "secret12")])
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            #expect(browser.answer.text.contains("<bdi>mira@example.org</bdi>"), "\(browser.answer)")
            #expect(!browser.answer.text.contains("secret12"))
            try await expectSignedIn(stage)
            let said = stage.daemon?.errors.value.text ?? ""
            #expect(!said.contains("secret12") && !said.contains("wrong-password-1"), "\(said)")
        }
    }

    @Test func `the sign-in page signs a new user up`() async throws {
        try await Stage.playProject { stage in
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.load("/sign-up")
            try await browser.send("sign_up", [mail, ("password", "x")])
            #expect(browser.answer.text.contains("id=\"password-wrong\">"), "\(browser.answer)")
            try await browser.send("sign_up", [mail, ("password", "secret12")])
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            try await expectSignedIn(stage)
        }
        try await Stage.playProject(["autoconfirm": false]) { stage in
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.load("/sign-up")
            try await browser.send("sign_up", [mail, ("password", "secret12")])
            #expect(browser.heading == "Enter the code", "\(browser.answer)")
            #expect(browser.answer.text.contains("<bdi>mira@example.org</bdi>"), "\(browser.answer)")
            try await browser.send("code", [("code", "000000")])
            #expect(browser.answer.text.contains("id=\"code-wrong\">"), "\(browser.answer)")
            try await browser.send("code", [("code", try await stage.code())])
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            try await expectSignedIn(stage)
        }
    }

    @Test func `the sign-in page signs in by mail and SMS`() async throws {
        try await Stage.playProject { stage in
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.load("/mail")
            try await browser.send("mail", [mail])
            #expect(browser.heading == "Enter the code", "\(browser.answer)")
            try await browser.load("/resend")
            #expect(browser.answer.text.contains("<button disabled>"), "\(browser.answer)")
            #expect(browser.answer.fields["refresh"] != nil, "\(browser.answer)")
            try await browser.send("code", [("code", try await stage.code())])
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            try await expectSignedIn(stage)
            _ = try await stage.ringback("logout", "app")

            // The link of another mail.
            var (second, _) = try await PageBrowser.begin(stage)
            try await second.load("/mail")
            try await second.send("mail", [mail])
            let link = try #require(try await stage.letter()["link"]?.string)
            let location = try #require(try await Browser.load(LocalURL(link)).location)
            let (answer, _) = try await Browser.deliver(LocalURL(location))
            #expect(answer.location == "/done", "\(answer)")
            try await second.load("/code")
            #expect(second.heading == "Signed in", "\(second.answer)")
            try await expectSignedIn(stage)
            _ = try await stage.ringback("logout", "app")

            var (third, _) = try await PageBrowser.begin(stage)
            try await third.load("/sms")
            for number in ["0151", "4155550155"] {
                try await third.send("sms", [("phone", number)])
                #expect(
                    third.answer.text.contains("id=\"phone-wrong\">Please enter a valid phone number with + and"),
                    "\(third.answer)")
            }
            try await third.send("sms", [("phone", "+4915112345678")])
            try await third.send("code", [("code", try await stage.code("messages"))])
            #expect(third.heading == "Signed in", "\(third.answer)")
        }
    }

    @Test func `the sign-in page links to a provider's page once`() async throws {
        try await Stage.playProject { stage in
            var (browser, flow) = try await PageBrowser.begin(stage)
            let id = try #require(flow["id"]?.string)
            let links = browser.answer.text.split(separator: "href=\"/go/").dropFirst().map { "/go/" + $0.prefix(22) }
            #expect(links.count == 4 && browser.answer.text.contains("Continue with GitHub"), "\(browser.answer)")
            let redirect = try await browser.get(links[2])
            #expect(redirect.status == 302, "\(redirect)")
            // Once: then the page, with a fresh link.
            #expect(try await browser.get(links[2]).location == "/")
            var page = try await Browser.load(LocalURL(try #require(redirect.location)))
            for _ in 0..<4 where page.status == 302 || page.status == 303 {
                let next = try LocalURL(try #require(page.location))
                page = try await Browser.load(next)
                if next.path.hasPrefix("/callback/") { break }
            }
            #expect(page.location == "/done", "\(page)")
            let ended = try await stage.api("GET", "/v1/flows/\(id)?wait=10").json
            #expect(ended["status"] == "completed", "\(ended)")
            try await browser.load("/")
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            try await expectSignedIn(stage, "alice@example.org")
        }
    }

    @Test func `the sign-in page offers the project's methods in the browser's language`() async throws {
        try await Stage.playProject(["email": false, "phone": false, "signup": false, "providers": ["github"]]) {
            stage in
            let (browser, _) = try await PageBrowser.begin(stage)
            let text = browser.answer.text
            #expect(!text.contains("<form") && !text.contains("/sign-up") && text.contains("GitHub"), "\(text)")
            let russian = try await browser.get(
                "/", Browser.navigation + [("Cookie", browser.cookie), ("Accept-Language", "ru")])
            #expect(russian.text.contains("<h1>Войти</h1>"), "\(russian)")
        }
    }

    @Test func `login --page shows the two words of the sign-in page`() async throws {
        try await Stage.playProject { stage in
            try await withUser(stage)
            let login = try stage.start("ringback", ["login", "app", "--page", "--no-browser"])
            let start = try await login.line("the start address", where: { $0.hasPrefix("http://127.0.0.1:") })
            var browser = try await PageBrowser(opening: start)
            try await browser.send("password", [mail, ("password", "secret12")])
            try await login.end().expect(
                0, prints: "Signed in to app as mira@example.org", says: "shows these two words")
        }
    }
}
