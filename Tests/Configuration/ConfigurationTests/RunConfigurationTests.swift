import RingbackBase
import Testing

@testable import Configuration

@Suite struct `Confined commands in the configuration` {
    private static let account = """
        [accounts.work]
        issuer = "https://id.example.org"
        client_id = "c"

        """

    private func runs(_ text: String) throws -> JSON? {
        let folder = try Folder()
        try folder.write(Self.account + text)
        return try JSON(parsing: Array(folder.report().json.utf8))["runs"]
    }

    @Test func `are reported by name, with every option that a table has`() throws {
        let runs = try runs(
            """
            [run.shell]

            [run.claude]
            command = ["claude", "--resume"]
            account = "work"
            scope = "openid  email"
            mcp = "work"
            tool = ["list_issues"]
            relay = "API=https://api.example.org/v1"
            read = ["/data", "/more"]
            write = "/out"
            home = "claude"
            network = "intranet"
            nested = true
            display = true
            env = ["ANTHROPIC_API_KEY"]
            """)
        #expect(runs?.array?.compactMap { $0["name"]?.string } == ["claude", "shell"])
        var first = try #require(runs?.array?.first?.object)
        #expect(first["source"]?["line"] == 6)
        first["source"] = nil
        #expect(
            JSON.object(first) == [
                "name": "claude", "command": ["claude", "--resume"], "accounts": ["work"], "scope": "openid email",
                "mcp": ["work"], "tool": ["list_issues"], "relay": ["API=https://api.example.org/v1"],
                "read": ["/data", "/more"], "write": ["/out"], "home": "claude", "network": "intranet",
                "nested": true, "display": true, "env": ["ANTHROPIC_API_KEY"],
            ])
        let second = runs?.array?.last
        #expect(second?["command"] == [] && second?["accounts"] == [] && second?["nested"] == false)
        #expect(second?["scope"] == nil && second?["home"] == nil && second?["network"] == nil)
    }

    @Test func `may name a program and folders below the home directory`() throws {
        let folder = try Folder()
        try folder.write("[run.a]\ncommand = [\"~/bin/tool\", \"~/x\"]\nread = \"~/data\"\n")
        let first = try JSON(parsing: Array(folder.report().json.utf8))["runs"]?.array?.first
        #expect(first?["command"] == [.string("\(folder.path)/bin/tool"), "~/x"])
        #expect(first?["read"] == [.string("\(folder.path)/data")])
    }

    @Test func `name accounts that exist`() throws {
        let found = try ConfigurationTests.mistakes(inFile: Self.account + "[run.a]\naccount = [\"work\", \"wrok\"]\n")
        #expect(found == ["4 run.a: it names an account that does not exist; did you mean work?"])
        let server = try ConfigurationTests.mistakes(inFile: Self.account + "[run.a]\nmcp = \"wrok\"\n")
        #expect(server == found)
    }
}
