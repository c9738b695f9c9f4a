import Glibc
import RingbackBase
import Testing

@Suite struct `The default account` {
    private func text(of path: String) throws -> String { try #require(FileTree.text(of: path)) }

    @Test func `ringback use writes the default account and changes nothing else`() async throws {
        try await Stage.play { stage in
            let before = try text(of: stage.configuration)
            try await stage.ringback("use", status: 1, out: "", says: "ringback use NAME")
            try await stage.ringback(
                "use", "work", status: 0, out: "The default account is work: \(stage.configuration)\n")
            #expect(try text(of: stage.configuration) == "default = \"work\"\n\n" + before)
            #expect(FileTree.mode(of: stage.configuration) == 0o600)
            try await stage.ringback("use", out: "work\n")
            #expect(try await stage.account()["default"] == true)
            #expect(try await stage.account("home")["default"] == nil)

            let other = try await stage.ringback("use", "home", "--json")
            #expect(try other.json["default"] == "home", "\(other)")
            #expect(try text(of: stage.configuration) == "default = \"home\"\n\n" + before)
            #expect(try await stage.account("home")["default"] == true)
            #expect(try await stage.account()["default"] == nil)

            try await stage.ringback("use", "wrok", status: 64, says: "Known: home, work.")
            #expect(try text(of: stage.configuration) == "default = \"home\"\n\n" + before)
        }
    }

    private static let accounts = "[accounts.work]\nissuer = \"https://id.example.org\"\nclient_id = \"c\"\n"

    @Test func `ringback use places the key in files of every form`() async throws {
        let accounts = Self.accounts
        let texts: [(String, String)] = [
            ("# head\n\n# about work\n\(accounts)", "# head\n\ndefault = \"work\"\n\n# about work\n\(accounts)"),
            ("# about work\n\(accounts)", "default = \"work\"\n\n# about work\n\(accounts)"),
            ("'default'=\t'gone' # mine\n\(accounts)", "default = \"work\" # mine\n\(accounts)"),
            (
                accounts.replacing("\n", with: "\r\n"),
                ("default = \"work\"\n\n" + accounts).replacing("\n", with: "\r\n")
            ),
        ]
        try await Stage.play(startsDaemon: false) { stage in
            for (before, after) in texts {
                try stage.write(configuration: before)
                try await stage.ringback("use", "work", status: 0)
                #expect(try text(of: stage.configuration) == after)
            }
            // Not a line of its own: nothing is changed.
            let odd = "\"d\\u0065fault\" = \"work\"\n\(accounts)"
            try stage.write(configuration: odd)
            let refused = try await stage.ringback("use", "work")
            #expect(refused.status != 0, "\(refused)")
            #expect(try text(of: stage.configuration) == odd)
        }
    }

    @Test func `the default account is not removed before the key default is`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            #expect(unsafe mkdir(stage.dropIns, 0o700) == 0)
            try stage.write(configuration: "# mine\n")
            try stage.write(Self.accounts, to: "\(stage.dropIns)/work.toml")
            try await stage.ringback("use", "work", status: 0)
            try await stage.ringback(
                "account", "remove", "work", "--yes", "--keep-session", status: 78,
                says: "${EDITOR:-vi} \(stage.configuration)")
            try stage.write(configuration: "# mine\n")
            try await stage.ringback("account", "remove", "work", "--yes", "--keep-session", status: 0)
        }
    }
}
