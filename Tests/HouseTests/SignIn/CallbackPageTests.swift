import RingbackBase
import Testing

@Suite struct `The callback's pages` {
    @Test func `LB-23: the page of a failed sign-in repeats no text of the provider`() async throws {
        try await Stage.play { stage in
            var pages: Set<String> = []
            // As browsers send them: what may not stand in a URL is escaped, and is UTF-8.
            for payload in [
                "%3Cscript%3Ealert(1)%3C/script%3E", "%22%3E%3Csvg/onload=alert(1)%3E", "javascript:alert(1)",
                "%0d%0aSet-Cookie:%20alert=1", "%0d%0a%0d%0a%3Chtml%3Ealert", "'-alert(1)-'", "%1b%5b31malert",
            ] {
                let port = try await CallbackPort(stage)
                var failed = try port.genuine.setting("code", to: nil).setting("error", to: "access_denied")
                for name in ["error_description", "error_uri"] { failed = try failed.setting(name, to: payload) }
                let (answer, page) = try await Browser.deliver(failed)
                #expect(answer.status == 303 && answer.location == "/failed" && answer.body.isEmpty, "\(answer)")
                CallbackPort.expectFields(of: answer, to: "the provider's no")
                let text = try #require(page?.text)
                pages.insert(text)
                #expect(page?.status == 200 && !text.contains("alert"), "\(text)")
            }
            #expect(pages.count == 1)
        }
    }

    @Test func `LB-24, NAT-24: callback pages redirect to no address from a parameter`() async throws {
        try await Stage.play { stage in
            let names = [
                "redirect", "redirect_uri", "redirect_to", "redirect_url", "next", "url", "uri", "return", "return_to",
                "returnTo", "continue", "target", "dest", "destination", "go", "goto", "RelayState", "callback", "to",
                "post_logout_redirect_uri",
            ]
            let targets = [
                "https://evil.example", "//evil.example", "/%5Cevil.example", "https:evil.example",
                "%2F%2Fevil.example", "javascript:alert(1)", "%0d%0aLocation:%20https://evil.example", "/failed",
                "@evil.example", "data:text/html,x",
            ]
            for target in targets {
                let port = try await CallbackPort(stage)
                let query = names.map { "&\($0)=\(target)" }.joined()
                let (answer, page) = try await Browser.deliver(LocalURL(port.genuine.text + query))
                #expect(answer.status == 303 && answer.location == "/done", "\(target): \(answer)")
                #expect(page?.status == 200 && page?.location == nil && page?.text.contains("evil") == false)
                for path in ["/done", "/failed", "/nothing"] {
                    let answer = try await port.send(port.request("GET", "\(path)?\(query.dropFirst())"))
                    let expected = path == "/nothing" ? "/unknown" : nil
                    #expect(answer.location == expected && answer.fields["refresh"] == nil, "\(target): \(answer)")
                }
            }
        }
    }

    @Test func `LB-25, LB-29, NAT-33: the last page has no code in its address and is not cached`() async throws {
        try await Stage.play { stage in
            let port = try await CallbackPort(stage)
            let (answer, page) = try await Browser.deliver(port.genuine)
            let code = try #require(port.genuine["code"])
            #expect(answer.location == "/done" && answer.body.isEmpty, "\(answer)")
            for text in ["\(answer)", "\(page ?? .nothing)"] { #expect(!text.contains(code)) }
            for answer in [answer, page ?? .nothing] {
                CallbackPort.expectFields(of: answer, to: "the callback and its page")
                #expect(answer.fields["x-frame-options"] == "DENY")
                #expect(answer.fields["etag"] == nil && answer.fields["last-modified"] == nil)
            }
            // A page for people: its language and its words are there without styles and scripts.
            let text = page?.text ?? ""
            #expect(text.contains("<html lang=\"en\">") && text.contains("<h1>Signed in</h1>"))
            #expect(text.contains("<bdi>work</bdi>") && text.contains("<bdi>127.0.0.1</bdi>"), "\(text)")
            #expect(text.contains("You are signed in as <b><bdi>alice@example.org</bdi></b>"), "\(text)")
        }
    }

    @Test func `callback pages say what happened without protocol words`() async throws {
        try await Stage.play { stage in
            let port = try await CallbackPort(stage)
            let open = try LocalURL(try await stage.begin("home").openURL)
            _ = try await Browser.load(open)
            var pages = ["used": try await Browser.load(open).text]
            for path in ["/done", "/failed", "/noted", "/older", "/unknown"] {
                pages[path] = try await port.send(port.request("GET", path)).text
            }
            for (path, page) in pages {
                let text = try #require(page.split(separator: "</style>").last)
                // No word of the protocol, and no sentence without an end.
                for word in ["answer", "callback", "redirect", "flow", "..", " ."] {
                    #expect(!text.contains(word), "\(path): \(text)")
                }
                #expect(text.contains(".</p>"), "\(path): \(text)")
                #expect(page.contains(" - Ringback</title>") && text.contains(">Ringback<"), "\(path): \(page)")
            }
            #expect(pages["/done"]?.contains("has signed you in") == true)
            #expect(pages["/failed"]?.contains("has changed nothing") == true)
        }
    }

    @Test func `the callback page says that the user declined, or that the sign-in took too long`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let (answer, page) = try await Browser.deliver(Browser.deny(at: flow.authorizationURL))
            #expect(
                answer.location == "/failed" && page?.text.contains("<h1>Sign-in declined</h1>") == true, "\(answer)")
            // The port stays open, since another sign-in waits there.
            _ = try await stage.begin("home")
            let short = try await stage.begin("work", ["timeout": 1])
            let late = try await Browser.signIn(at: short.authorizationURL)
            #expect(try await stage.ended(short)["status"]?.string == "expired")
            let (expired, over) = try await Browser.deliver(late)
            #expect(expired.location == "/failed", "\(expired)")
            #expect(over?.text.contains("<h1>The sign-in took too long</h1>") == true, "\(over ?? .nothing)")
            #expect(over?.text.contains("<bdi>work</bdi>") == true)
            #expect(over?.text.contains("It was not finished within 1 second.") == true)
            #expect(try await stage.sandbox.counters().requests("token") == 0)
        }
    }
}
