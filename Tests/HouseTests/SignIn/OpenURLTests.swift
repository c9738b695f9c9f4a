import RingbackBase
import TestSupport
import Testing

@Suite struct `The address that a program opens` {
    private func page(behind url: String, _ fields: [(String, String)] = Browser.navigation) async throws -> LocalURL {
        let answer = try await Browser.load(LocalURL(url), fields: fields)
        #expect(answer.status == 303, "\(answer)")
        return try LocalURL(answer.location ?? "")
    }

    @Test func `LB-14: an open_url redirects once, to an authorization request of its own`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let (open, shown) = (try LocalURL(flow.openURL), try LocalURL(flow.authorizationURL))
            let authority = try LocalURL(flow.redirectURI).authority
            #expect(open.authority == authority && open.path.hasPrefix("/start/"))
            let ahead = try await Browser.load(open, fields: Browser.navigation + [("Sec-Purpose", "prefetch")])
            #expect(ahead.status == 404 && ahead.location == nil, "\(ahead)")
            let head = try await stage.tcp(open.port, "HEAD \(open.target) HTTP/1.1\r\nHost: \(open.authority)\r\n\r\n")
            #expect(head.status == 405, "\(head)")
            let own = try await page(behind: flow.openURL)
            for name in ["state", "nonce", "code_challenge"] {
                #expect(own[name] != nil && own[name] != shown[name], "\(name)")
            }
            #expect(own["redirect_uri"] == shown["redirect_uri"] && own["client_id"] == shown["client_id"])
            let again = try await Browser.load(open)
            #expect(again.status == 410 && again.location == nil, "\(again)")
            let seen = try await stage.api("GET", "/v1/flows/\(flow.id)")
            #expect(seen["open_urls"]?.array?.first?["status"]?.string == "fetched" && seen["open_url"] == nil)
            #expect(try await Browser.deliver(Browser.signIn(at: own.text, as: "bob")).answer.location == "/done")
            #expect(try await stage.account()["subject"]?.string == "bob")
            // A second tab, opened by the other entrance, comes too late and changes nothing.
            let second = try await Browser.load(Browser.signIn(at: flow.authorizationURL))
            #expect(second.location == "/unknown", "\(second)")
        }
    }

    @Test func `an open_url of a cancelled sign-in leads nowhere`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            #expect(try await stage.api("DELETE", "/v1/flows/\(flow.id)")["status"]?.string == "cancelled")
            #expect(try await Browser.load(LocalURL(flow.openURL)).status == 410)
        }
    }

    @Test func `each call gets its own open_url, and the newest thirty-two can be opened`() async throws {
        try await Stage.play { stage in
            var urls: [String] = []
            for _ in 0..<33 { urls.append(try await stage.begin().openURL) }
            #expect(Set(urls).count == 33)
            let replaced = try await Browser.load(LocalURL(urls[0]))
            #expect(replaced.status == 410 && replaced.text.contains("newer addresses have replaced it"), "\(replaced)")
            var pages: [LocalURL] = []
            for url in urls.dropFirst() { pages.append(try await page(behind: url)) }
            #expect(Set(pages.map { $0["state"] ?? "" }).count == 32)
            #expect(try await Browser.deliver(Browser.signIn(at: pages[0].text)).answer.location == "/done")
        }
    }

    @Test func `login prints the page if newer calls have replaced its open_url`() async throws {
        try await Stage.play { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let login = try stage.start("ringback", ["login", "work"], environment: ["BROWSER": browser])
            let first = try await opened.line()
            for _ in 0..<32 { _ = try await stage.begin() }
            #expect(try await Browser.load(LocalURL(first)).status == 410)
            let line = try await login.errorLine("the page's address") { $0.contains("state=") }
            let url = try #require(line.split(separator: " ").first { $0.contains("state=") })
            #expect(try await Browser.deliver(Browser.signIn(at: String(url))).answer.location == "/done")
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `an open_url pushes its authorization request when opened, and later shows the result`() async throws {
        try await Stage.play { stage in
            try await stage.sandbox.control(["pushed_requests": "required"])
            let flow = try await stage.begin()
            #expect(try await stage.sandbox.counters().requests("par") == 1)
            let own = try await page(behind: flow.openURL)
            let shown = try LocalURL(flow.authorizationURL)["request_uri"]
            #expect(try await stage.sandbox.counters().requests("par") == 2)
            #expect(own["request_uri"] != nil && own["request_uri"] != shown)
            let second = try await stage.begin()
            #expect(try await Browser.deliver(Browser.signIn(at: own.text)).answer.location == "/done")
            for late in [second, flow] {
                let answer = try await Browser.load(LocalURL(late.openURL))
                #expect(answer.status == 303 && answer.location == "/done", "\(answer)")
            }
        }
    }

    @Test func `an open_url at a Supabase project has its own key`() async throws {
        try await Stage.playProject { stage in
            let begun = try await stage.api("POST", "/v1/accounts/app/sign-in", ["oauth_provider": "github"])
            let shown = try LocalURL(begun["redirect_uri"]?.string ?? "")
            var url = try LocalURL(begun["open_url"]?.string ?? "")
            // Through the project and the provider behind it, back to the listener.
            for _ in 0..<8 where url.port != shown.port || url.path.hasPrefix("/start/") {
                url = try url.following(try await Browser.load(url).location ?? "")
            }
            #expect(url.path.hasPrefix("/callback/app/") && url.path != shown.path)
            #expect(try await Browser.deliver(url).answer.location == "/done")
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `another user does not use an open_url up, and is named to the user`() async throws {
        try await Stage.play { stage in
            let (browser, opened) = try stage.recordingBrowser()
            let login = try stage.start("ringback", ["login", "work"], environment: ["BROWSER": browser])
            let open = try LocalURL(try await opened.line())
            let foreign = try await stage.run(
                asUser: Stranger.uid, script: Stranger.asking, "\(open.port)",
                "GET \(open.target) HTTP/1.1\r\nHost: \(open.authority)\r\n\r\n")
            #expect(AnswerHead(foreign.out).status == 404, "\(foreign)")
            _ = try await login.errorLine("who asked") { $0.contains("requested by uid \(Stranger.uid)") }
            let line = try await login.errorLine("the page's address") { $0.contains("state=") }
            #expect(line.contains("/authorize?"))
            let own = try await page(behind: open.text)
            _ = try await Browser.deliver(Browser.signIn(at: own.text))
            #expect(try await login.end().out == "Signed in to work as alice@example.org\n")
        }
    }

    @Test func `login prints the page if nobody fetches its open_url`() async throws {
        try await Stage.play { stage in
            let login = try stage.start("ringback", ["login", "work"], environment: ["BROWSER": "true"])
            _ = try await login.errorLine("why") { $0.hasPrefix("The sign-in page has not been opened yet.") }
            let line = try await login.errorLine("the page's address") { $0.contains("state=") }
            let url = line.split(separator: " ").last.map(String.init) ?? ""
            _ = try await Browser.deliver(Browser.signIn(at: url))
            #expect(try await login.end().status == 0)
        }
    }
}
