import Cryptography
import LocalHTTP
import RingbackBase
import SignInPage
import Testing

@testable import CallbackListener

@Suite struct `A page of the listener` {
    private static let hostile = [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "</dd></dl></main>",
        "&lt;b&gt;", "]]><!--", "</style><script>", "a\u{0}b", "line\r\nbreak", "\u{202E}txt.exe", "\u{2066}x",
        "\u{7F}",
    ]

    private func html(_ content: PageContent, _ language: PageLanguage = .english) -> String {
        content.html(in: language)
    }

    @Test(arguments: hostile) func `has no markup of a name`(name: String) {
        let plain = html(PageContent(.done, of: SignInLabel(account: "a", providerHost: "a", user: "a")))
        for label in [
            SignInLabel(account: name, providerHost: "a", user: "a"),
            SignInLabel(account: "a", providerHost: name, user: "a"),
            SignInLabel(account: "a", providerHost: "a", user: name),
        ] {
            let text = html(PageContent(.done, of: label))
            for mark in ["<", "\"", "'"] {
                #expect(text.count { String($0) == mark } == plain.count { String($0) == mark }, "\(name): \(text)")
            }
            // No control character but the line breaks of the page itself, and no sign that turns the text around.
            #expect(
                text.unicodeScalars.allSatisfy {
                    $0 == "\n" || $0.properties.generalCategory != .control && !$0.properties.isBidiControl
                })
            #expect(text.count { $0.isNewline } == plain.count { $0.isNewline })
        }
    }

    @Test func `shows a name as it is`() {
        let text = html(PageContent(.done, of: SignInLabel(account: "a<b>&\"c'", providerHost: nil)))
        #expect(text.contains("<p class=\"place\"><b><bdi>a&lt;b&gt;&amp;&quot;c&#39;</bdi></b></p>"))
    }

    @Test func `names the account and the provider's host in one line, and how long the sign-in could take`() {
        let label = SignInLabel(account: "Notes", providerHost: "id.example", seconds: 600)
        let english = html(PageContent(.expired, of: label))
        #expect(english.contains("<b><bdi>Notes</bdi></b> at <b><bdi>id.example</bdi></b></p>"))
        #expect(english.contains("It was not finished within 10 minutes.") && !english.contains("signed in as"))
        #expect(html(PageContent(.expired, of: label), .russian).contains("Вход не был завершён за 10 минут."))
    }

    @Test(arguments: Page.allCases, PageLanguage.allCases)
    func `is whole for keyboards and screen readers`(page: Page, language: PageLanguage) {
        let text = html(PageContent(page, of: SignInLabel(account: "work", providerHost: "id.example")), language)
        for tag in ["<html", "<title>", "<h1>", "<main", "<style>", "<p class=\"place\">"] {
            #expect(text.ranges(of: tag).count == 1, "\(tag): \(text)")
        }
        #expect(text.contains("<html lang=\"\(language.rawValue)\">"))
        #expect(text.contains(" - Ringback</title>") && text.contains("<span>Ringback</span>"))
        #expect(text.contains("<svg") && text.contains("aria-hidden=\"true\""))
        for word in ["<script", "style=", "href", "src=", "http:", "https:", "url(", "@import", "javascript:"] {
            #expect(!text.contains(word), "\(word): \(text)")
        }
    }

    @Test(arguments: Page.allCases) func `says the same in both languages, in whole sentences`(page: Page) {
        let both = PageLanguage.allCases.map { $0.sentences(of: page) }
        for sentences in both {
            #expect(!sentences.heading.isEmpty && !sentences.heading.hasSuffix("."))
            for text in [sentences.event, sentences.advice] {
                #expect(text.hasSuffix("."))
                #expect(!text.contains("..") && !text.contains("  ") && !text.contains(" ."))
                // Constant text is not escaped.
                #expect(!text.contains("<") && !text.contains("&"))
            }
        }
        #expect(both[0].event.utf8.allSatisfy { $0 < 0x80 })
        for word in ["answer", "callback", "redirect", "flow"] {
            #expect(!(both[0].event + both[0].advice).contains(word), "a word of the protocol: \(word)")
        }
        #expect(both[1].event.utf8.contains { $0 >= 0x80 })
        #expect(Set(Page.allCases.map { PageLanguage.russian.sentences(of: $0).heading }).count == Page.allCases.count)
    }

    @Test func `has the stylesheet that the policy allows, and no other`() throws {
        let response = CallbackPages.response(PageContent(.done), in: .english)
        let parts = html(PageContent(.done)).split(separator: "style>")
        let style = try #require(parts.dropFirst().first.map { $0.dropLast("</".count) })
        let digest = Base64.encode(Digest.sha256(String(style)))
        #expect(
            response.fields[all: "Content-Security-Policy"] == [
                "default-src 'none'; style-src 'sha256-\(digest)'; frame-ancestors 'none'; form-action 'none'; "
                    + "base-uri 'none'"
            ])
    }
}
