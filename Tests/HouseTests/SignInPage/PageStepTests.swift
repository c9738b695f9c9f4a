import RingbackBase
import Testing

/// What the sign-in page does beside the plain ways in: its time, its address, other users, other browsers.
@Suite struct `The sign-in page also` {
    private let mira = [("email", "mira@example.org"), ("password", "secret12")]

    private func api(_ stage: Stage, _ path: String, _ body: JSON) async throws -> JSON {
        let answer = try await stage.api("POST", "/v1/accounts/app/\(path)", body)
        #expect([200, 201, 202].contains(answer.status), "\(answer)")
        return answer.json
    }

    @Test func `the sign-in page leaves its form when the flow expires`() async throws {
        try await Stage.playProject { stage in
            let flow = try await api(stage, "sign-in", ["method": "page", "timeout": 2])
            var browser = try await PageBrowser(opening: try #require(flow["open_url"]?.string))
            #expect(browser.heading == "Sign in", "\(browser.answer)")
            let refresh = try #require(browser.answer.fields["refresh"].flatMap { Int($0) })
            #expect((1...3).contains(refresh), "\(browser.answer)")
            _ = try await stage.api("GET", "/v1/flows/\(try #require(flow["id"]?.string))?wait=20")
            try await browser.load("/")
            #expect(browser.heading == "The sign-in has ended", "\(browser.answer)")
            #expect(!browser.answer.text.contains("<form") && browser.answer.fields["refresh"] == nil)
            let (usual, _) = try await PageBrowser.begin(stage)
            let bound = try #require(usual.answer.fields["refresh"].flatMap { Int($0) })
            #expect((3_500...3_601).contains(bound), "\(usual.answer)")
        }
    }

    @Test func `the sign-in page redirects away from a query`() async throws {
        try await Stage.playProject { stage in
            let (browser, _) = try await PageBrowser.begin(stage)
            for path in ["/?code=secret", "/sign-up?code=secret", "//evil.example/?code=secret"] {
                let answer = try await browser.get(path)
                #expect(answer.status == 303 && answer.fields["location"] == "/#", "\(path): \(answer)")
            }
        }
    }

    @Test func `the sign-in page takes a phone number in the address field`() async throws {
        try await Stage.playProject(["users": [["phone": "+4915112345678", "password": "secret12"]]]) { stage in
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.send("password", [("email", "0151"), ("password", "secret12")])
            #expect(browser.answer.text.contains("id=\"email-wrong\">Please enter a valid phone"), "\(browser.answer)")
            try await browser.send("password", [("email", "+49 151 12345678"), ("password", "secret12")])
            #expect(browser.heading == "Signed in", "\(browser.answer)")
        }
    }

    @Test func `the sign-in page refuses another user and waits for the right one`() async throws {
        try await Stage.playProject(["users": [["email": "luke@example.org", "password": "secret12"]]]) { stage in
            try await stage.signUp()
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.send("password", [("email", "luke@example.org"), ("password", "secret12")])
            #expect(browser.heading == "Sign in", "\(browser.answer)")
            #expect(
                browser.answer.text.contains("role=\"alert\">The account is signed in as another user."),
                "\(browser.answer)")
            #expect(try await stage.account("app")["user"]?["email"] == "mira@example.org")
            try await browser.send("password", mira)
            #expect(browser.heading == "Signed in", "\(browser.answer)")
        }
    }

    @Test(arguments: ["password", "forgotten"])
    func `the sign-in page asks before another user replaces the account's user`(action: String) async throws {
        try await Stage.playProject(["users": [["email": "luke@example.org", "password": "secret12"]]]) { stage in
            try await stage.signUp()
            var (browser, _) = try await PageBrowser.begin(stage)
            let luke = ("email", "luke@example.org")
            if action == "password" {
                try await browser.send("password", [luke, ("password", "secret12")])
            } else {
                try await browser.send("forgotten", [luke])
                let link = try #require(try await stage.letter()["link"]?.string)
                let location = try #require(try await Browser.load(LocalURL(link)).location)
                let answer = try await Browser.load(LocalURL(location))
                browser = try await PageBrowser(entering: try #require(answer.location))
            }
            #expect(browser.answer.text.contains("value=\"switch_user\""), "\(browser.answer)")
            #expect(!browser.answer.text.contains("--switch"), "\(browser.answer)")
            try await browser.send("switch_user")
            #expect(browser.heading == (action == "password" ? "Signed in" : "New password"), "\(browser.answer)")
            #expect(try await stage.account("app")["user"]?["email"] == "luke@example.org")
        }
    }

    @Test func `the sign-in page says how long to wait and that a link uses up its code`() async throws {
        try await Stage.playProject(["mail_interval": 60]) { stage in
            var (browser, flow) = try await PageBrowser.begin(stage)
            try await browser.load("/mail")
            try await browser.send("mail", [("email", "mira@example.org")])
            try await browser.send("code", [("code", "000000")])
            #expect(
                browser.answer.text.contains("used up because the link in the email was opened."), "\(browser.answer)")
            _ = try await stage.api("DELETE", "/v1/flows/\(try #require(flow["id"]?.string))?all=true")
            (browser, flow) = try await PageBrowser.begin(stage)
            try await browser.load("/mail")
            try await browser.send("mail", [("email", "mira@example.org")])
            #expect(browser.heading == "Sign in by email", "\(browser.answer)")
            #expect(browser.answer.text.contains("Too many attempts. Please wait "), "\(browser.answer)")
            #expect(!browser.answer.text.contains("a few minutes"))
        }
    }

    @Test func `a mailed link stays valid after many start addresses`() async throws {
        try await Stage.playProject { stage in
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.load("/mail")
            try await browser.send("mail", [("email", "mira@example.org")])
            for _ in 0..<33 {
                let joined = try await api(stage, "sign-in", ["method": "page"])
                let start = try await Browser.load(LocalURL(try #require(joined["open_url"]?.string)))
                #expect(start.location?.contains("/enter/") == true, "\(start)")
            }
            let link = try #require(try await stage.letter()["link"]?.string)
            let location = try #require(try await Browser.load(LocalURL(link)).location)
            let (answer, _) = try await Browser.deliver(LocalURL(location))
            #expect(answer.location?.hasPrefix("/done") == true, "\(answer)")
            try await browser.load("/code")
            #expect(browser.heading == "Signed in", "\(browser.answer)")
        }
    }

    @Test func `a start address of the sign-in page lets one browser in`() async throws {
        try await Stage.playProject { stage in
            let flow = try await api(stage, "sign-in", ["method": "page"])
            let start = try LocalURL(try #require(flow["open_url"]?.string))
            let entry = try LocalURL(try #require(try await Browser.load(start).location))
            #expect(try await Browser.load(entry).fields["set-cookie"] != nil)
            let second = try await Browser.load(entry)
            #expect(second.status == 410 && second.fields["set-cookie"] == nil, "\(second)")
            #expect(second.text.contains("<h1>Not this browser</h1>") && !second.text.contains("<form"), "\(second)")
            let again = try await Browser.load(start)
            #expect(again.fields["set-cookie"] == nil && !again.text.contains("<form"), "\(again)")
            #expect(again.status == 410, "\(again)")
        }
    }

    @Test func `the sign-in page changes no session of another sign-in`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            func recover() async throws -> PageBrowser {
                var (browser, _) = try await PageBrowser.begin(stage)
                try await browser.load("/forgotten")
                try await browser.send("forgotten", [("email", "mira@example.org")])
                try await browser.send("code", [("code", try await stage.code())])
                #expect(browser.heading == "New password", "\(browser.answer)")
                return browser
            }
            try await stage.setProject(["mail_interval": 0])
            var first = try await recover()
            let form = first.form("new_password", [("password", "another34")])
            let second = try await recover()
            #expect(try await first.post(form).status == 303)
            try await first.load("/")
            #expect(first.heading == "Your last entry was not used", "\(first.answer)")
            #expect(second.heading == "New password")
            _ = try await stage.ringback("logout", "app")
            try await stage.logIn()
        }
    }

    @Test func `the sign-in page resends a second factor's code after its interval`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            let factor = try await api(stage, "factors", ["factor_type": "phone", "phone": "+4915112345678"])
            let id = try #require(factor["id"]?.string)
            let challenge = try await api(stage, "factors/\(id)/challenge", [:])
            _ = try await api(
                stage, "factors/\(id)/verify",
                ["challenge_id": challenge["id"] ?? .null, "code": .string(try await stage.code("messages"))])
            _ = try await stage.ringback("logout", "app")
            try await stage.setProject(["sms_interval": 0])
            var (browser, _) = try await PageBrowser.begin(stage)
            try await browser.send("password", mira)
            #expect(browser.heading == "Second factor" && !browser.answer.text.contains("name=\"code\""))
            try await browser.send("challenge", [("factor", id)])
            #expect(browser.answer.text.contains("name=\"code\""), "\(browser.answer)")
            #expect(browser.answer.text.contains("You can ask for another message in "), "\(browser.answer)")
            let sent = try await stage.code("messages")
            try await browser.send("challenge", [("factor", id)])
            #expect(browser.answer.text.contains("role=\"alert\">A message was sent already."), "\(browser.answer)")
            #expect(try await stage.code("messages") == sent)
            try await browser.send("factor", [("factor", id), ("code", sent)])
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            #expect(try await stage.account("app")["aal"] == "aal2")
        }
    }
}
