import MCPBridge
import Testing

@testable import Configuration

@Suite struct `Restricted sockets in the configuration` {
    private static let account = """
        [accounts.mail]
        issuer = "https://id.example.org"
        client_id = "c"

        [accounts.work]
        issuer = "https://id.example.org"
        client_id = "c"

        """

    private func exposes(_ text: String) throws -> [ExposeConfiguration] {
        let folder = try Folder()
        try folder.write(Self.account + text)
        return try folder.load().exposes
    }

    private func mistakes(_ text: String) throws -> [String] {
        try ConfigurationTests.mistakes(inFile: Self.account + text)
    }

    @Test func `come in the order of the file, with all that they may have`() throws {
        let found = try exposes(
            """
            [[expose]]
            name = "ci"
            account = "mail"
            scope = "openid  email"
            allow_uids = [100999, 7]
            ttl = "8h"

            [[expose]]
            name = "all"
            accounts = ["work", "mail"]
            """)
        #expect(found.map(\.name) == ["ci", "all"])
        #expect(found[0].accounts == ["mail"] && found[0].scopes == ["openid", "email"])
        #expect(found[0].allowedUIDs == [100_999, 7] && found[0].lifetime == 28_800)
        #expect(found[1].accounts == ["work", "mail"] && found[1].scopes == nil && found[1].lifetime == nil)
        #expect(found[1].source.line == 15)
    }

    @Test(arguments: [("90", 90), ("\"90s\"", 90), ("\"15m\"", 900), ("\"7d\"", 604_800), ("\"2w\"", 1_209_600)])
    func `end after seconds or a span`(written: String, seconds: Int) throws {
        let found = try exposes("[[expose]]\nname = \"a\"\naccount = \"mail\"\nttl = \(written)\n")
        #expect(found.first?.lifetime == seconds)
    }

    @Test(arguments: ["0", "-1", "\"\"", "\"8\"", "\"h\"", "\"8 h\"", "\"1.5h\"", "31536001", "\"53w\"", "true"])
    func `end at no other text`(written: String) throws {
        let found = try mistakes("[[expose]]\nname = \"a\"\naccount = \"mail\"\nttl = \(written)\n")
        #expect(found.count == 1 && found[0].hasPrefix("11 expose.1.ttl: "), "\(found)")
    }

    @Test(arguments: [
        ("account = \"mail\"", "8 expose.1: needs name"),
        ("name = \"../x\"\naccount = \"mail\"", "9 expose.1.name: begins with"),
        ("name = \"a\"\naccount = \"mial\"", "8 expose.a: it names an account that does not exist"),
        ("name = \"a\"\naccounts = [\"mail\", \"mail\"]", "10 expose.1.accounts: the same account"),
        (
            "name = \"a\"\naccount = \"mail\"\naccounts = [\"work\"]",
            "10 expose.1.account: cannot be combined with accounts"
        ),
        ("name = \"a\"\naccount = \"mail\"\nscope = \"\"", "11 expose.1.scope: is 1 to 64 scopes"),
        ("name = \"a\"\naccount = \"mail\"\nscope = \"ä\"", "11 expose.1.scope: a scope is printable"),
        ("name = \"a\"\naccount = \"mail\"\nallow_uids = [65534]", "11 expose.1.allow_uids: 65534 is the uid"),
    ])
    func `have each mistake at its line`(lines: String, expected: String) throws {
        let found = try mistakes("[[expose]]\n\(lines)\n")
        #expect(found.count == 1 && found[0].hasPrefix(expected), "\(found)")
    }

    @Test func `have names of their own, and a bound`() throws {
        let one = "[[expose]]\nname = \"a\"\naccount = \"mail\"\n"
        #expect(try mistakes(one + one) == ["11 expose.a: another [[expose]] has this name"])
        let many = (0..<33).map { "[[expose]]\nname = \"n\($0)\"\naccount = \"mail\"\n" }.joined()
        #expect(try mistakes(many).first?.contains("there are more than 32") == true)
    }

    @Test func `must not have the name of one that was made by hand`() throws {
        let folder = try Folder()
        try folder.write(Self.account + "[[expose]]\nname = \"a\"\naccount = \"mail\"\n")
        let configuration = try folder.load()
        #expect(configuration.clashes(with: ["b"]).isEmpty)
        let errors = configuration.clashes(with: ["a", "b"])
        #expect(errors.map(\.line) == [8] && errors.map(\.key) == ["expose.a"])
        #expect(errors.first?.cause == .nameTaken(socket: "a"))
        let report = ConfigurationReport(of: folder.place(), exposedByHand: ["a"])
        #expect(!report.isValid && report.errors == errors)
    }

    @Test func `are reported with what may be called at an MCP server`() throws {
        let folder = try Folder()
        try folder.write(
            """
            [accounts.linear]
            mcp = "https://mcp.example.org/mcp"

            [[expose]]
            name = "agent"
            account = "linear"
            mcp = true
            tools = ["echo"]
            """)
        #expect(folder.report().json.contains(#""mcp":{"methods":["tools/list","tools/call"],"tools":["echo"]}"#))
    }

    @Test func `are reported, with a note where nothing would be served`() throws {
        let folder = try Folder()
        try folder.write(
            """
            [accounts.mail]
            issuer = "https://id.example.org"
            client_id = "c"
            scopes = ["openid", "email"]

            [accounts.app]
            provider = "supabase"
            url = "https://abcdefgh.supabase.co"
            api_key = "sb_publishable_x"

            [[expose]]
            name = "none"
            account = "mail"
            scope = "calendar"

            [[expose]]
            name = "one"
            accounts = ["mail", "app"]
            scope = "openid"
            """)
        let configuration = try folder.load()
        #expect(configuration.exposes.map(\.name) == ["none", "one"])
        let notes = configuration.exposes.map { $0.notes(configuration.accounts) }
        #expect(notes[0].count == 1 && notes[0][0].contains("none will be served"))
        #expect(notes[1].count == 1 && notes[1][0].contains("Supabase"))
        #expect(notes[0][0].hasPrefix("mail does not request"))
        #expect(folder.report().json.contains("\"exposes\":[{\"name\":\"none\""))
    }

    @Test func `are a list, and not for drop-ins`() throws {
        #expect(try mistakes("[expose]\nname = \"a\"\n") == ["8 expose: must be an array of tables, not a table"])
        let folder = try Folder()
        try folder.write(Self.account)
        try folder.makeDirectory("accounts.d")
        try folder.write("[[expose]]\nname = \"a\"\naccount = \"mail\"\n", to: "accounts.d/x.toml")
        #expect(throws: ConfigurationErrors.self) { try folder.load() }
    }
}

@Suite struct `MCP servers that restricted sockets expose` {
    private static let start = """
        [accounts.mail]
        issuer = "https://id.example.org"
        client_id = "c"

        [accounts.linear]
        mcp = "https://mcp.example.org/mcp"

        [[expose]]
        name = "agent"

        """

    private func read(_ lines: String) throws -> ExposeConfiguration? {
        let folder = try Folder()
        try folder.write(Self.start + lines)
        return try folder.load().exposes.first
    }

    @Test func `have the tools and methods that are named`() throws {
        let all = try #require(try read("account = \"linear\"\nmcp = true")?.mcp)
        #expect(all.tools == nil && all.methods == ["tools/list", "tools/call"])
        let some = try #require(
            try read("account = \"linear\"\nmcp = true\ntools = [\"a\"]\nmethods = [\"prompts/get\"]")?.mcp)
        #expect(some.tools == ["a"] && some.methods == ["prompts/get"])
        #expect(try read("account = \"linear\"")?.mcp == nil)
        #expect(try read("account = \"linear\"\nmcp = true\ntools = []")?.mcp?.tools == [])
    }

    @Test(arguments: [
        ("account = \"mail\"\nmcp = true", "mcp needs an account at an MCP server"),
        ("accounts = [\"linear\", \"mail\"]\nmcp = true", "mcp is for one account"),
        ("account = \"linear\"\nmcp = true\nscope = \"a\"", "no token is served"),
        ("account = \"linear\"\ntools = [\"a\"]", "belongs to mcp = true only"),
        ("account = \"linear\"\nmcp = false\nmethods = [\"ping\"]", "belongs to mcp = true only"),
        ("account = \"linear\"\nmcp = true\ntools = [\"a\\u0007\"]", "names of tools"),
        ("account = \"linear\"\nmcp = true\nmethods = [\"tools/cal\"]", "did you mean tools/call?"),
    ])
    func `have no mistakes that would open more than was meant`(lines: String, words: String) throws {
        let found = try mistakes(inFile: Self.start + lines)
        #expect(found.contains { $0.contains(words) }, "\(found)")
    }
}
