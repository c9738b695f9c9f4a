import RingbackBase
import Testing

@Suite struct `ringback login of an account that is signed in` {
    @Test func `login of a signed-in account starts no browser`() async throws {
        try await Stage.playSignedIn { stage in
            let requests = try await stage.sandbox.counters().requests("token")
            let again = try await stage.ringback(
                "login", "work", environment: ["BROWSER": "/bin/false"], status: 0,
                out: "work: already signed in as alice@example.org\n")
            #expect(again.err == "To sign in again, run: ringback login work --again\n", "\(again)")
            let json = try await stage.ringback("login", "work", "--json", "--no-browser")
            let document = try json.json
            #expect(json.status == 0 && json.lines.count == 1 && json.err.isEmpty, "\(json)")
            #expect(document["already_signed_in"] == true && document["state"] == "authenticated")
            #expect(try await stage.sandbox.counters().requests("token") == requests)
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(!flows.contains { $0["status"] == "pending" }, "\(flows)")
        }
    }

    @Test func `login of a signed-in account signs in again with --again and the like`() async throws {
        try await Stage.playSignedIn { stage in
            let ways = [
                ["--again"], ["--switch"], ["--replace"], ["--method", "browser"], ["--scopes", "openid email"],
            ]
            for options in ways {
                let login = try stage.start("ringback", ["login", "work", "--no-browser"] + options)
                _ = try await Browser.deliver(Browser.signIn(at: login.line()))
                let ended = try await login.end().expect(0)
                #expect(ended.lines.last == "Signed in to work as alice@example.org", "\(options): \(ended)")
            }
        }
    }

    @Test func `login starts a sign-in after an ended session, and not because another sign-in has failed`()
        async throws
    {
        try await Stage.playSignedIn { stage in
            // Another user's sign-in fails, and is the account's error until the next one starts.
            let other = try stage.start("ringback", ["login", "work", "--no-browser", "--again"])
            _ = try await Browser.deliver(Browser.signIn(at: other.line(), as: "bob"))
            #expect(try await other.end().status == 1)
            #expect(try await stage.account()["error"] != nil)
            try await stage.ringback(
                "login", "work", "--no-browser", status: 0, out: "work: already signed in as alice@example.org\n")
            try await stage.ringback("logout", "work", status: 0)
            let anew = try stage.start("ringback", ["login", "work", "--no-browser"])
            _ = try await Browser.deliver(Browser.signIn(at: anew.line()))
            #expect(try await anew.end().lines.last == "Signed in to work as alice@example.org")
        }
    }

    @Test func `token --sign-in of a signed-in account prints its token`() async throws {
        try await Stage.playSignedIn { stage in
            let token = try await stage.ringback("token", "work", "--sign-in", status: 0)
            #expect(token.err.isEmpty, "\(token)")
            #expect(token.out == "\(try await stage.token() ?? "")\n")
        }
    }
}
