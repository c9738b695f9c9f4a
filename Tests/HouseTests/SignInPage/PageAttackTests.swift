import RingbackBase
import TestSupport
import Testing

/// What a web page, another program or another user may try. Each try is refused and changes nothing: the user of the
/// page is signed in all the same.
@Suite struct `An attack on the sign-in page` {
    private let mira = [("email", "mira@example.org"), ("password", "secret12")]

    private func attack(_ test: (Stage, PageBrowser, JSON) async throws -> Void) async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            _ = try await stage.ringback("logout", "app")
            var (browser, flow) = try await PageBrowser.begin(stage)
            try await test(stage, browser, flow)
            #expect(try await stage.account("app")["subject"] == nil)
            try await browser.load("/")
            try await browser.send("password", mira)
            #expect(browser.heading == "Signed in", "\(browser.answer)")
        }
    }

    private func changing(_ fields: [(String, String)], _ name: String, _ value: String?) -> [(String, String)] {
        fields.filter { $0.0 != name } + (value.map { [(name, $0)] } ?? [])
    }

    @Test func `the sign-in page refuses a form of another site (CSRF)`() async throws {
        try await attack { _, browser, _ in
            let form = browser.form("password", mira)
            for (name, value) in [
                ("Origin", "http://evil.example"), ("Origin", "null"),
                ("Origin", "http://\(browser.address.authority).evil"),
                ("Origin", "http://127.0.0.1:\(browser.address.port)"), ("Origin", nil),
                ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"), ("Cookie", nil),
                ("Cookie", "ringback=guess"),
            ] as [(String, String?)] {
                let answer = try await browser.post(form, changing(browser.own, name, value))
                #expect(answer.status == 403 && answer.body.isEmpty, "\(name) \(value ?? "none"): \(answer)")
            }
            for token in ["", "guess"] {
                #expect(try await browser.post(browser.form("password", mira, token: token)).status == 403)
            }
            let twice = try await browser.post(form, browser.own + [("Origin", browser.origin)])
            #expect(twice.status == 403, "\(twice)")
        }
    }

    @Test func `the sign-in page refuses a rebound host name`() async throws {
        try await attack { stage, browser, _ in
            let port = browser.address.port
            for host in [
                "evil.example:\(port)", "localhost:\(port)", "127.0.0.1:\(port)", "x.\(browser.address.authority)",
            ] {
                let request =
                    "GET / HTTP/1.1\r\nHost: \(host)\r\nCookie: \(browser.cookie)\r\nConnection: close\r\n\r\n"
                let answer = try await stage.tcp(port, request)
                #expect([404, 421].contains(answer.status) && !answer.text.contains("<form"), "\(host): \(answer)")
            }
        }
    }

    @Test func `the sign-in page is not shown in a frame, an image or a script`() async throws {
        try await attack { _, browser, _ in
            #expect(browser.answer.fields["x-frame-options"] == "DENY")
            let policy = try #require(browser.answer.fields["content-security-policy"])
            for rule in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"] {
                #expect(policy.contains(rule), "\(policy)")
            }
            for (mode, destination) in [("navigate", "iframe"), ("no-cors", "image"), ("cors", "empty")] {
                let fields = [("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", destination), ("Cookie", browser.cookie)]
                let answer = try await browser.get("/", fields)
                #expect(answer.status == 404 && !answer.text.contains("<form"), "\(answer)")
            }
        }
    }

    @Test func `the sign-in page refuses a planted cookie (fixation)`() async throws {
        try await attack { _, browser, _ in
            let planted = Browser.navigation + [("Cookie", "ringback=planted")]
            let answer = try await browser.get("/", planted)
            #expect(answer.status == 403 && !answer.text.contains("<form"), "\(answer)")
            #expect(answer.fields["set-cookie"] == nil && !answer.text.contains("name=\"token\""))
            // Beside the genuine one it changes nothing.
            let both = Browser.navigation + [("Cookie", "ringback=planted; \(browser.cookie)")]
            #expect(try await browser.get("/", both).status == 200)
        }
    }

    @Test func `a used start address of the sign-in page sets no cookie`() async throws {
        try await attack { _, browser, flow in
            let start = try LocalURL(try #require(flow["open_url"]?.string))
            let again = try await Browser.load(start)
            #expect(again.status == 410 && again.fields["set-cookie"] == nil, "\(again)")
            for path in ["/enter/", "/enter/guess", "/enter/../"] {
                let answer = try await browser.get(path, Browser.navigation)
                #expect(answer.status == 410 && answer.fields["set-cookie"] == nil, "\(path): \(answer)")
            }
        }
    }

    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `another user of the machine does not see the sign-in page`() async throws {
        try await attack { stage, browser, _ in
            let flow = try await stage.api("POST", "/v1/accounts/app/sign-in", ["method": "page"])
            let start = try LocalURL(try #require(flow["open_url"]?.string))
            for (target, host) in [(start.target, start.authority), ("/", browser.address.authority)] {
                let request = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nCookie: \(browser.cookie)\r\n\r\n"
                let answer = try await stage.run(script: Stranger.asking, "\(browser.address.port)", request)
                #expect(answer.out.hasPrefix("HTTP/1.1 404 ") && !answer.out.contains("<form"), "\(answer)")
            }
        }
    }

    @Test func `a tab without the cookie does not see the sign-in page`() async throws {
        try await attack { _, browser, _ in
            let stranger = try await browser.get("/", Browser.navigation)
            #expect(stranger.status == 403 && stranger.text.contains("<h1>Not this browser</h1>"), "\(stranger)")
            #expect(!stranger.text.contains("app") || !stranger.text.contains("name=\"token\""))
            // The same browser's second tab shows the same sign-in.
            #expect(try await browser.get("/").status == 200)
            // A link of a provider is of no use without the cookie.
            let link = try #require(browser.value(after: "href=\"/go/"))
            #expect(try await browser.get("/go/\(link)", Browser.navigation).status == 403)
        }
    }

    @Test func `the form of one sign-in page is refused by another`() async throws {
        let accounts = Stage.project + Stage.project.replacing("[accounts.app]", with: "[accounts.other]")
        try await Stage.playProject(configuration: accounts) { stage in
            try await stage.signUp()
            _ = try await stage.ringback("logout", "app")
            let (first, _) = try await PageBrowser.begin(stage)
            let flow = try await stage.api("POST", "/v1/accounts/other/sign-in", ["method": "page"])
            let second = try await PageBrowser(opening: try #require(flow["open_url"]?.string))
            #expect(first.address.authority != second.address.authority)
            let form = first.form("password", mira)
            #expect(try await second.post(form).status == 403)
            #expect(try await second.post(form, changing(second.own, "Cookie", first.cookie)).status == 403)
            #expect(try await second.get("/", Browser.navigation + [("Cookie", first.cookie)]).status == 403)
            for name in ["app", "other"] { #expect(try await stage.account(name)["subject"] == nil) }
        }
    }

    @Test func `the sign-in page refuses unknown and oversized forms`() async throws {
        try await attack { _, browser, _ in
            let form = browser.form("password", mira)
            for hostile in [
                "", "&&&", "action=nothing", form + "&password=twice", form + "&code=1", form + "&x=1", form + "&%zz=1",
                form.replacing("secret12", with: String(repeating: "a", count: 2_000)), "action=password",
                form.replacing("secret12", with: "%00"), form.replacing("action=password", with: "action=ended"),
            ] {
                let answer = try await browser.post(hostile)
                #expect([400, 403].contains(answer.status) && answer.body.isEmpty, "\(hostile): \(answer)")
            }
            let large = try await browser.post(String(repeating: "a", count: 70_000))
            #expect(large.status == 413, "\(large)")
            let type = browser.own + [("Content-Type", "text/plain")]
            #expect(try await browser.post(form, type).status == 415)
        }
    }

    @Test func `a slow form does not block the sign-in page`() async throws {
        try await attack { _, browser, _ in
            let connection = try Connection(to: browser.address.place)
            let head = browser.own.map { "\($0.0): \($0.1)\r\n" }.joined()
            await connection.send(
                "POST / HTTP/1.1\r\nHost: \(browser.address.authority)\r\n\(head)Content-Length: 100\r\n\r\naction=")
            // Meanwhile the page goes on.
            #expect(try await browser.get("/").status == 200)
            #expect(try await connection.answer(within: Bound.seconds(20)).status == 408)
        }
    }

    @Test func `the sign-in page's port is held on both loopback addresses`() async throws {
        try await attack { stage, browser, _ in
            // Browsers ask both addresses of a name below localhost: neither is left to another program.
            for isIPv6 in [false, true] {
                let connection = try? Connection(to: isIPv6 ? .ipv6(browser.address.port) : .ipv4(browser.address.port))
                guard let connection else {
                    #expect(isIPv6, "nobody listens at 127.0.0.1")
                    continue
                }
                let field = "Cookie: \(browser.cookie)\r\nConnection: close\r\n\r\n"
                await connection.send("GET / HTTP/1.1\r\nHost: \(browser.address.authority)\r\n\(field)")
                #expect(try await connection.answer().text.contains("<form"))
            }
            let listeners = try await stage.api("GET", "/v1/status")["callback_listeners"]?.array ?? []
            #expect(
                listeners.isEmpty || listeners.contains { $0.string?.hasSuffix(":\(browser.address.port)") == true })
        }
    }

    @Test func `a form that is repeated after the sign-in changes nothing`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            _ = try await stage.ringback("logout", "app")
            var (browser, _) = try await PageBrowser.begin(stage)
            #expect(browser.answer.fields["cache-control"] == "no-store")
            let form = browser.form("password", mira)
            try await browser.send("password", mira)
            #expect(browser.heading == "Signed in", "\(browser.answer)")
            let session = try await stage.account("app")["session_id"]
            let grants = try await stage.sandbox.log(issuer: "/supabase").count {
                $0["path"]?.string?.hasSuffix("/token") == true
            }
            let again = try await browser.post(form)
            #expect(again.status == 303 && again.destination == "/", "\(again)")
            for path in ["/", "/sign-up", "/code", "/go/x"] {
                try await browser.load(path)
                #expect(browser.heading == "Signed in", "\(path): \(browser.answer)")
            }
            #expect(try await stage.account("app")["session_id"] == session)
            let after = try await stage.sandbox.log(issuer: "/supabase").count {
                $0["path"]?.string?.hasSuffix("/token") == true
            }
            #expect(after == grants)
        }
    }
}
