import Glibc
import RingbackBase
import Testing

@Suite struct `A verb without an account` {
    private static let verbs = ["token", "session", "claims", "refresh"]

    @Test func `a verb without an account means the only one`() async throws {
        let account =
            "[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\nscopes = [\"openid\", \"email\"]\n"
        try await Stage.play(account) { stage in
            for verb in Self.verbs {
                try await stage.ringback(verb, status: 3, says: "ringback login work")
            }
            let login = try stage.start("ringback", ["login", "--no-browser"])
            _ = try await Browser.deliver(Browser.signIn(at: login.line()))
            #expect(try await login.end().lines.last == "Signed in to work as alice@example.org")
            #expect(try await stage.ringback("token").out == "\(try await stage.token() ?? "")\n")
            #expect(try await stage.ringback("session").out.contains("alice@example.org"))
        }
    }

    @Test func `a verb without an account means the default one, or is a usage error`() async throws {
        try await Stage.play { stage in
            try await stage.signIn("home")
            for verb in Self.verbs + ["login"] {
                let output = try await stage.ringback(verb, status: 64, out: "")
                for word in ["home, work", "Usage: ringback \(verb) ACCOUNT", "ringback use ACCOUNT"] {
                    #expect(output.err.contains(word), "\(verb): \(output)")
                }
            }
            try await stage.ringback("use", "home", status: 0)
            #expect(try await stage.ringback("token").out == "\(try await stage.token("home") ?? "")\n")
            #expect(try await stage.ringback("session").out.contains("alice@example.org"))
            #expect(try await stage.ringback("refresh", "--force").out.hasPrefix("Refreshed home"))
            try await stage.ringback("login", out: "home: already signed in as alice@example.org\n")
            // What ends a session needs a name.
            try await stage.ringback("logout", status: 64)
            #expect(try await stage.token("home") != nil)

            try await stage.ringback("token", "work", "--issuer", stage.sandbox.origin, status: 64)
            try stage.write(configuration: "")
            try await stage.ringback("reload", status: 0)
            try await stage.ringback("token", status: 64, says: "Run: ringback account add\n")
        }
    }

    @Test func `login on a terminal asks for the account`() async throws {
        try await Stage.play { stage in
            try await stage.signIn("home")
            let login = try stage.terminal("login")
            try await login.shows("1  home  signed in as alice@example.org")
            try await login.shows("2  work  not signed in")
            try await login.shows("Number or name: ")
            login.type("3")
            try await login.shows("There is no account “3”.")
            try await login.shows("Number or name: ")
            login.type(" home ")
            let ended = try await login.end()
            #expect(ended.status == 0 && ended.text.contains("home: already signed in as"), "\(ended)")
            let numbered = try stage.terminal("login")
            try await numbered.shows("Number or name: ")
            numbered.type("1")
            #expect(try await numbered.end().text.contains("home: already signed in as"))
        }
    }

    @Test func `the choice of an account can be left by Ctrl-D and Ctrl-C`() async throws {
        try await Stage.play { stage in
            for keys in [[0x04], [0x03]] as [[UInt8]] {
                let login = try stage.terminal("login")
                try await login.shows("Number or name: ")
                if keys == [0x03] { login.send(SIGINT) } else { login.press(keys) }
                let ended = try await login.end()
                #expect(ended.status == 4 && ended.text.contains("No account was chosen."), "\(ended)")
                #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.isEmpty == true)
            }
        }
    }
}
