import Glibc
import RingbackBase
import RingbackClient
import Testing

@Suite struct `Links for running apps` {
    private static let configuration = """
        [accounts.coin]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        redirect_uri = "swisscoin://auth-callback"

        [schemes."org.example.notes"]
        command = ["{stage}/bin/notes", "--open", "{url}"]

        """

    /// What the app of the scheme writes down when it is started: its arguments, a line a start.
    private func plantApp(_ stage: Stage) throws {
        try stage.write(
            "#!/bin/sh\nprintf '%s|' \"$@\" >>'\(stage.directory)/started'\necho >>'\(stage.directory)/started'\n",
            to: "\(stage.directory)/bin/notes", mode: 0o700)
    }

    private func starts(_ stage: Stage) -> [String] {
        (FileTree.text(of: "\(stage.directory)/started") ?? "").split(separator: "\n").map(String.init)
    }

    @Test func `an app gets each link that ringback open hands over, and another one takes its place`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let first = try stage.start("ringback", ["links", "swisscoin"])
            try await listening(stage, "swisscoin")
            try await stage.ringback(
                "open", "swisscoin://pay/7?amount=1&to=bob#now", status: 0, out: "Sent to the app.\n")
            _ = try await first.line("the link") { $0 == "swisscoin://pay/7?amount=1&to=bob#now" }
            // What a page may have and a URL may not is escaped on the way.
            try await stage.ringback("open", "swisscoin://pay?f=a|b{c}\"é`^\\<>", status: 0)
            _ = try await first.line("the second") { $0 == "swisscoin://pay?f=a%7Cb%7Bc%7D%22%C3%A9%60%5E%5C%3C%3E" }
            let second = try stage.start("ringback", ["links", "SWISSCOIN", "--json"])
            try await first.end().expect(4, says: "Another program listens")
            try await stage.ringback("open", "swisscoin://pay/8", status: 0)
            // The first link was acknowledged: it does not come again.
            let line = try await second.line("the second link")
            let link = try JSON(parsing: Array(line.utf8))
            #expect(link["url"] == "swisscoin://pay/8" && link["scheme"] == "swisscoin" && link["id"]?.string != nil)
            second.send(SIGINT)
            #expect(try await second.end().status == 0)
            let audit = try await stage.ringback("audit", "--json").out
            #expect(audit.contains("listener_replaced") && !audit.contains("pay/"))
        }
    }

    @Test func `an app with the library acknowledges links, and is told when another app listens`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let client = BrokerClient(application: "Coin", socket: stage.socket)
            var links = client.deepLinks("swisscoin").makeAsyncIterator()
            try await listening(stage, "swisscoin")
            for number in 1...3 { #expect(try await stage.ringback("open", "swisscoin://n/\(number)").status == 0) }
            for number in 1...3 {
                let link = try #require(try await links.next())
                #expect(link.url == "swisscoin://n/\(number)" && link.scheme == "swisscoin")
                #expect(link.at.secondsSince1970 > 0)
                if number < 3 { try await client.acknowledge(link) }
            }
            // What it has not acknowledged goes to the next one.
            var next = client.deepLinks("swisscoin").makeAsyncIterator()
            let again = try #require(try await next.next())
            #expect(again.url == "swisscoin://n/3")
            #expect(try await links.next() == nil)
            try await client.acknowledge(again)
            try await client.acknowledge(again)
            await #expect(throws: RingbackError.self) {
                var none = client.deepLinks("unknown").makeAsyncIterator()
                _ = try await none.next()
            }
        }
    }

    @Test func `where no app listens it is started, once, and the links wait for it`() async throws {
        try await Stage.play(Self.configuration) { stage in
            try plantApp(stage)
            let hostile = "org.example.notes://open/$(id);x=%22'a'&--flag"
            try await stage.ringback(
                "open", hostile, status: 0, out: "No app listens now; the link is kept for one minute.\n")
            try await stage.eventually("the start") { !starts(stage).isEmpty }
            try await stage.ringback("open", "org.example.notes://open/2", status: 0)
            // The URL is one argument, as it came.
            #expect(starts(stage) == ["--open|\(hostile)|"])
            let app = try stage.start("ringback", ["links", "org.example.notes"])
            _ = try await app.line("the second link") { $0 == "org.example.notes://open/2" }
            #expect(app.output.value.lines == [hostile, "org.example.notes://open/2"])
            let audit = try await stage.ringback("audit", "--json").out
            #expect(audit.contains("application_started") && !audit.contains("open/"))
            #expect(starts(stage).count == 1)
        }
    }

    @Test func `what is of a sign-in never reaches the app, and the sign-in is finished`() async throws {
        let sandbox = ["--redirect-uri", "swisscoin://auth-callback"]
        try await Stage.play(Self.configuration, sandboxArguments: sandbox) { stage in
            let app = try stage.start("ringback", ["links", "swisscoin"])
            try await listening(stage, "swisscoin")
            for url in [
                "swisscoin://auth-callback?x=1", "SwissCoin://AUTH-CALLBACK/#y", "swisscoin://x?code=c&flow=k",
                "swisscoin://x?code=c&state=s", "swisscoin://x#access_token=t", "swisscoin://x?a=b&refresh%5Ftoken=t",
                "swisscoin://x#id_token=t", "unknown://x",
            ] {
                try await stage.api(
                    "POST", "/v1/callbacks", ["url": .string(url)], status: 400, code: "invalid_callback")
                #expect(try await stage.ringback("open", url).status != 0)
            }
            let flow = try await stage.begin("coin")
            let callback = try await Browser.location(
                after: "user=alice&decision=allow", at: flow.authorizationURL)
            try await stage.ringback("open", callback, status: 0)
            // The same callback once more is no link either.
            #expect(try await stage.ringback("open", callback + "#late").status != 0)
            try await stage.ringback("open", "swisscoin://true-link", status: 0)
            _ = try await app.line("the link")
            #expect(app.output.value.lines == ["swisscoin://true-link"])
        }
    }

    @Test func `events and status tell the scheme alone, and the daemon's words nothing`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let events = try stage.start("ringback", ["events", "--json"])
            _ = try await events.line("the beginning")
            try await stage.ringback("open", "swisscoin://canary-place?q=canary", status: 0)
            let line = try await events.line("the event") { $0.contains("deep_link") }
            let event = try JSON(parsing: Array(line.utf8))
            #expect(event["event"] == "deep_link" && event["scheme"] == "swisscoin" && event["account"] == nil)
            let told = try stage.start("ringback", ["events"])
            _ = try await told.line("the beginning in words")
            try await stage.ringback("open", "swisscoin://canary-place/2", status: 0)
            let words = try await told.line("the event in words") { $0.contains("deep_link") }
            #expect(words.contains("swisscoin  deep_link") && !words.contains("canary"))
            for path in ["/v1/status", "/v1/metrics", "/v1/audit"] {
                #expect(!(try await stage.api("GET", path)).text.contains("canary"), "\(path)")
            }
            #expect(!line.contains("canary") && stage.daemon?.errors.value.text.contains("canary") == false)
            #expect(SecretSearch.files(in: stage.state) == [])
        }
    }

    @Test func `config check shows schemes, and a reload takes them over`() async throws {
        try await Stage.play(Self.configuration) { stage in
            try await stage.ringback("config", "check", status: 0, prints: "scheme org.example.notes:\n")
            #expect(try await stage.ringback("open", "late://x").status != 0)
            FileTree.makeDirectory(stage.dropIns)
            try stage.write("[schemes.late]\n", to: "\(stage.dropIns)/late.toml")
            try await stage.ringback("reload", status: 0)
            try await stage.ringback("open", "late://x", status: 0)
            try stage.write("[schemes.late]\ncomand = [\"/bin/true\"]\n", to: "\(stage.dropIns)/late.toml")
            try await stage.ringback("config", "check", status: 78, says: "did you mean command?")
        }
    }

    /// Waits until somebody listens, by the daemon's own word.
    private func listening(_ stage: Stage, _ scheme: String) async throws {
        try await stage.eventually("a listener for \(scheme)") {
            try await stage.api("GET", "/v1/status")["link_listeners"]?.array?.contains(.string(scheme)) == true
        }
    }
}
