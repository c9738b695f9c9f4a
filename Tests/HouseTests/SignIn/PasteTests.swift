import Glibc
import RingbackBase
import Testing

@Suite struct `A pasted callback` {
    private func begin(_ stage: Stage, _ account: String = "work") async throws -> (TerminalProgram, JSON) {
        let login = try TerminalProgram(
            ["login", account, "--no-browser"], environment: stage.environment, columns: 200)
        try await login.shows("Paste the callback URL")
        let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
        let flow = try #require(flows.first { $0["account"]?.string == account && $0["status"] == "pending" })
        return (login, flow)
    }

    private func callback(_ flow: JSON, as user: String = "alice") async throws -> LocalURL {
        try await Browser.signIn(at: flow["authorization_url"]?.string ?? "", as: user)
    }

    /// Accounts whose callbacks go to a place that is not on loopback.
    private func play(
        _ accounts: [String] = ["work"], at place: String, _ body: (Stage) async throws -> Void
    ) async throws {
        let configuration = accounts.map { account in
            """
            [accounts.\(account)]
            issuer = "{sandbox}"
            client_id = "ringback-app"
            scopes = ["openid"]
            redirect_uri = "\(place)"

            """
        }
        try await Stage.play(configuration.joined()) { stage in
            try await stage.sandbox.control(["clients": [["id": "ringback-app", "redirect_uris": [.string(place)]]]])
            try await body(stage)
        }
    }

    @Test func `SK-30: a pasted callback finishes the login and is not shown`() async throws {
        try await Stage.play { stage in
            let (login, flow) = try await begin(stage)
            // The address alone, on the first line.
            let lines = login.text.split(separator: "\r\n")
            let first = try #require(lines.first { $0.contains(flow["authorization_url"]?.string ?? "-") })
            #expect(first.hasSuffix(flow["authorization_url"]?.string ?? "-"))
            let url = try await callback(flow)
            login.type("  \(url.text) ")
            let (status, text) = try await login.end()
            #expect(status == 0 && text.contains("Signed in to work as alice@example.org"), "\(text)")
            #expect(!text.contains(url["code"] ?? "-"))
        }
    }

    @Test func `SK-30: a wrong pasted callback is asked for again and changes nothing`() async throws {
        try await Stage.play { stage in
            let (login, flow) = try await begin(stage)
            let other = try await stage.begin("home")
            let genuine = try await callback(flow)
            let foreign = try await Browser.signIn(at: other.authorizationURL)
            let wrong = [
                ("", "Paste the callback URL"), ("hello", "A URL begins with a scheme"),
                ("http://127.0.0.1:1/elsewhere?code=a", "This is not the callback of this sign-in"),
                (foreign.text, "This is not the callback of this sign-in"),
                (try genuine.setting("state", to: "guessed").text, "The sign-in still waits."),
                (try genuine.setting("iss", to: "http%3A%2F%2Fevil.example").text, "The sign-in still waits."),
                (genuine.text + "&state=again", "The sign-in still waits."),
            ]
            for (text, told) in wrong {
                login.type(text)
                try await login.shows(told)
            }
            #expect(try await stage.account("home")["state"]?.string == "authenticating")
            login.type(genuine.text)
            #expect(try await login.end().status == 0)
            #expect(try await stage.sandbox.counters().tokenRequests("authorization_code") == 1)
        }
    }

    @Test func `ringback complete on a terminal names the account and asks`() async throws {
        try await Stage.play { stage in
            let (login, flow) = try await begin(stage)
            let url = try await callback(flow)
            let declined = try stage.terminal("complete", url.text)
            try await declined.shows("Finish the sign-in to work with this URL?")
            declined.type("n")
            let (status, text) = try await declined.end()
            #expect(status == 4 && text.contains("is still pending"), "\(text)")
            #expect(try await stage.account()["state"]?.string == "authenticating")
            let complete = try stage.terminal("complete")
            try await complete.shows("Paste the callback URL")
            complete.type(url.text)
            try await complete.shows("Finish the sign-in to work with this URL?")
            complete.type("y")
            let finished = try await complete.end()
            #expect(finished.status == 0 && finished.text.contains("Signed in to work as alice"), "\(finished)")
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `ringback complete names the commands that work after a refusal`() async throws {
        try await Stage.playSignedIn { stage in
            let flow = try await stage.begin()
            let other = try await Browser.signIn(at: flow.authorizationURL, as: "bob")
            try await stage.ringback("complete", other.text, status: 1, out: "", says: "ringback login work --switch")
            let login = try stage.start("ringback", ["login", "work", "--switch", "--no-browser"])
            _ = try await Browser.deliver(Browser.signIn(at: try await login.line(), as: "bob"))
            let switched = try await login.end().expect(0)
            #expect(switched.out.hasSuffix("as bob@example.org\n"), "\(switched)")
            let denied = try await Browser.deny(at: try await stage.begin("home").authorizationURL)
            try await stage.ringback("complete", denied.text, status: 4, says: "run: ringback login home\n")
        }
    }

    @Test func `ringback complete without a URL names the ways to give it`() async throws {
        try await Stage.play { stage in
            for input in ["", "\n", "  \n"] {
                try await stage.ringback(
                    "complete", stdin: input, status: 64, out: "", says: "no callback URL on standard input")
            }
            try await stage.ringback("complete", "", status: 64, says: "There is no URL")
        }
    }

    @Test func `login with a custom scheme says where the browser shows the callback`() async throws {
        try await play(at: "org.example.app://callback") { stage in
            let login = try TerminalProgram(
                ["login", "work", "--no-browser"], environment: stage.environment, columns: 400)
            try await login.shows("ringback scheme register org.example.app)")
            try await login.shows("Firefox shows it in the address line")
            #expect(!login.text.contains("does not load"))
            try await login.shows("Paste the callback URL")
            let flow = try #require(try await stage.api("GET", "/v1/flows")["flows"]?.array?.first)
            login.type(
                try await Browser.location(
                    after: "user=alice&decision=allow", at: flow["authorization_url"]?.string ?? ""))
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `login with an https redirect takes the page's address`() async throws {
        try await play(at: "https://app.example.org/back") { stage in
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let address = try await login.line()
            _ = try await login.errorLine("the way back") { line in
                line.contains("begins with https://app.example.org/back") && line.hasSuffix("ringback complete")
            }
            let url = try await Browser.location(after: "user=alice&decision=allow", at: address)
            try await stage.ringback("complete", stdin: url + "\n", status: 0, prints: "Signed in to work as alice")
            #expect(try await login.end().status == 0)
        }
    }

    @Test func `ringback complete finds the account among several with one redirect URI`() async throws {
        try await play(["work", "home"], at: "org.example.app://callback") { stage in
            _ = try await stage.begin("work")
            let flow = try await stage.begin("home")
            let url = try await Browser.location(after: "user=alice&decision=allow", at: flow.authorizationURL)
            let complete = try stage.terminal("complete", url)
            try await complete.shows("Finish the sign-in to home with this URL?")
            complete.type("yes")
            #expect(try await complete.end().status == 0)
            #expect(try await stage.account("home")["state"]?.string == "authenticated")
            #expect(try await stage.account("work")["state"]?.string == "authenticating")
        }
    }

    @Test func `login without a terminal asks for no paste, and Ctrl-D keeps it waiting`() async throws {
        try await Stage.play { stage in
            let piped = try stage.start("ringback", ["login", "work", "--no-browser"], stdin: "nonsense\n")
            let address = try await piped.line()
            _ = try await Browser.deliver(Browser.signIn(at: address))
            let ended = try await piped.end().expect(0)
            #expect(!ended.err.contains("Paste the callback URL ("), "\(ended)")
            let (login, flow) = try await begin(stage, "home")
            // Ctrl-D: the person wants to paste nothing.
            login.press([4])
            try await login.shows("Waiting for the sign-in to home")
            _ = try await Browser.deliver(callback(flow))
            #expect(try await login.end().status == 0)
        }
    }
}
