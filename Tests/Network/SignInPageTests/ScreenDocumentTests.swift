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
        content.factors = [
            .init(id: "\"1", name: "<script>", isPhone: true, hasMessage: false),
            .init(id: "2", name: nil, isPhone: false, hasMessage: false),
        ]
        content.secondsLeft = 30
        content.lifetime = 600
        content.complaint = .init(field: "password", sentence: "<script>")
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
        for id in ids where !id.hasSuffix("-wrong") { #expect(html.contains("<label for=\"\(id)\">"), "\(id)") }
    }

    @Test func `offers one-time codes and new passwords to the browser, and no kept password`() {
        let login = ScreenDocument(content(.login), in: .english).html
        #expect(login.contains("name=\"password\" autocomplete=\"off\"") && !login.contains("current-password"))
        #expect(ScreenDocument(content(.signUp), in: .english).html.contains("autocomplete=\"new-password\""))
        #expect(ScreenDocument(content(.code), in: .english).html.contains("autocomplete=\"one-time-code\""))
        // What was typed into a password field is never on a page.
        #expect(login.contains("name=\"password\" autocomplete=\"off\" value=\"\""))
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
