import RingbackBase
import SignInPage
import Testing

@Suite struct `A screen of the sign-in page` {
    private func content(_ screen: Screen) -> ScreenContent {
        var content = ScreenContent(
            screen, account: "<b>app</b>", host: "a\"b", words: "amber falcon", token: "t\"><script>")
        content.offers.email = true
        content.offers.phone = true
        content.offers.signUp = true
        content.providers = [.init(provider: "<i>", path: "/go/\"x")]
        content.email = "\"><script>alert(1)</script>"
        content.sentTo = "<script>"
        content.user = "<script>"
        content.ending = "<script>"
        content.factors = [
            .init(id: "\"1", name: "<script>", isPhone: true, hasMessage: false),
            .init(id: "2", name: nil, isPhone: false, hasMessage: false),
        ]
        content.secondsLeft = 30
        content.lifetime = 600
        content.complaint = (field: "password", sentence: "<script>")
        return content
    }

    @Test(arguments: Screen.allCases, PageLanguage.allCases)
    func `escapes everything, and works without a script`(screen: Screen, language: PageLanguage) {
        let html = ScreenDocument(content(screen), in: language).html
        for text in ["<script", "style=", "javascript:", "http:", "<i>", "onclick", "\"\""] where text != "\"\"" {
            #expect(!html.contains(text), "\(text): \(html)")
        }
        #expect(html.contains("<html lang=\"\(language.rawValue)\">"))
        // Every field has its label, and an id stands on the page once.
        let ids = html.split(separator: " id=\"").dropFirst().map { $0.prefix { $0 != "\"" } }
        #expect(Set(ids).count == ids.count, "\(ids)")
        for id in ids where !id.hasSuffix("-wrong") && !id.hasSuffix("-rule") {
            #expect(html.contains("<label for=\"\(id)\">"), "\(id)")
        }
    }

    @Test func `offers one-time codes and new passwords to the browser, and no kept password`() {
        let login = ScreenDocument(content(.login), in: .english).html
        #expect(login.contains("name=\"password\" autocomplete=\"off\"") && !login.contains("current-password"))
        #expect(ScreenDocument(content(.signUp), in: .english).html.contains("autocomplete=\"new-password\""))
        #expect(ScreenDocument(content(.code), in: .english).html.contains("autocomplete=\"one-time-code\""))
        // What was typed into a password field is never on a page.
        #expect(login.contains("name=\"password\" autocomplete=\"off\" value=\"\""))
    }

    /// A page of a project with all methods, on which nothing is wrong yet.
    private func html(_ screen: Screen, _ change: (inout ScreenContent) -> Void = { _ in }) -> String {
        var content = ScreenContent(screen, account: "app", host: "id.example", words: "amber falcon", token: "t")
        content.offers.email = true
        content.offers.phone = true
        content.offers.signUp = true
        change(&content)
        return ScreenDocument(content, in: .english).html
    }

    @Test func `gives the focus to the only field that is left to fill`() {
        let alone: [(Screen, String)] = [
            (.forgotten, "email"), (.mail, "email"), (.sms, "phone"), (.code, "code"), (.newPassword, "password"),
        ]
        for (screen, field) in alone {
            let fields = html(screen).split(separator: "<input ").filter { $0.contains(" autofocus") }
            #expect(fields.count == 1 && fields[0].contains(" name=\"\(field)\""), "\(screen): \(fields)")
        }
        for screen in [Screen.login, .signUp] {
            #expect(!html(screen).contains(" autofocus"), "\(screen)")
            let typed = html(screen) { $0.email = "mira@example.org" }
            #expect(
                typed.contains(
                    "autocomplete=\"\(screen == .login ? "off" : "new-password")\" value=\"\" required autofocus"))
        }
        // The question is read before a field is reached.
        let asked = html(.login) { content in
            content.email = "mira@example.org"
            content.offersSwitch = true
        }
        #expect(!asked.contains(" autofocus"))
        let factors = [true, false].map { ScreenContent.Factor(id: "\($0)", name: nil, isPhone: $0, hasMessage: $0) }
        #expect(html(.factor) { $0.factors = [factors[1]] }.contains(" autofocus"))
        #expect(!html(.factor) { $0.factors = factors }.contains(" autofocus"))
    }

    @Test func `begins with the providers, and ends with the other ways as one list`() throws {
        let login = html(.login) { $0.providers = [.init(provider: "azure", path: "/go/x")] }
        let parts = [
            "Continue with Microsoft", "<p class=\"or\">or</p>", "id=\"password\"", "/forgotten", "<ul>", "/mail",
            "/sms",
        ]
        let places = try parts.map { part in try #require(login.ranges(of: part).first, "\(part)").lowerBound }
        #expect(places == places.sorted() && login.ranges(of: "<ul>").count == 1, "\(login)")
        #expect(!html(.login).contains("class=\"or\""))
        #expect(html(.login).contains("Enter nothing unless") && !html(.mail).contains("Enter nothing unless"))
        #expect(html(.mail).contains("<p class=\"words known\">The two words: <b>amber falcon</b></p>"))
    }

    @Test func `says the rule of a new password first, where a message went, and who has signed in`() {
        for screen in [Screen.signUp, .newPassword] {
            let first = html(screen)
            #expect(first.contains("At least 6 characters.") && first.contains("aria-describedby=\"password-rule\""))
            let wrong = html(screen) { $0.complaint = (field: "password", sentence: "Too weak.") }
            #expect(wrong.contains("aria-describedby=\"password-rule password-wrong\""))
        }
        let sent = html(.code) { content in
            content.sentTo = "mira@example.org"
            content.hasLink = true
        }
        #expect(sent.contains("The email went to <b><bdi>mira@example.org</bdi></b>"))
        let done = html(.done) { $0.user = "mira@example.org" }
        #expect(done.contains("You are signed in as <b><bdi>mira@example.org</bdi></b>"))
        #expect(html(.ended) { $0.ending = ScreenDocument.expired(600, in: .english) }.contains("within 10 minutes."))
    }

    @Test func `counts down only where nothing is typed, and leaves every form when the time is over`() {
        for screen in Screen.allCases {
            let refresh = ScreenDocument(content(screen), in: .english).refresh
            switch screen {
            case .resend: #expect(refresh == 5)
            case .wait: #expect(refresh == 1)
            case .done, .unused, .ended, .elsewhere: #expect(refresh == nil)
            default: #expect(refresh == 601)
            }
            let html = ScreenDocument(content(screen), in: .english).html
            #expect(refresh != nil || !html.contains("<form"), "\(screen)")
        }
        #expect(ScreenDocument(content(.resend), in: .english).html.contains("<button disabled>"))
    }
}
