import Glibc
import StrictJSON
import Testing

/// `ringback mcp add-to`, with files as the tools' users have them.
@Suite struct `ringback mcp add-to` {
    private static let account = "[accounts.linear]\nmcp = \"http://127.0.0.1:9/mcp\"\n\n" + Stage.twoAccounts

    /// A tool, its file in the home directory, and what the file has before.
    struct Tool: Sendable, CustomTestStringConvertible {
        let name: String
        let file: String
        let former: String
        /// What the entry has, in its order.
        let parts: [String]

        var testDescription: String { name }

        private static func list(_ member: String) -> String {
            "{\n  // mine\n  \"theme\": \"One\",\n  \"\(member)\": {\n    \"other\": {\"command\": \"/bin/other\"}\n  }\n}\n"
        }
        private static let usual = [#""linear": {"#, #""command": "{ringback}""#, #""args": ["mcp", "linear"]"#]

        static let all = [
            Tool(name: "claude", file: ".claude.json", former: list("mcpServers"), parts: usual),
            Tool(
                name: "claude-desktop", file: ".config/Claude/claude_desktop_config.json", former: list("mcpServers"),
                parts: usual),
            Tool(
                name: "codex", file: ".codex/config.toml",
                former: "# mine\nmodel = \"m\"\n\n[mcp_servers.other]\ncommand = \"/bin/other\"\n",
                parts: ["[mcp_servers.linear]", #"command = "{ringback}""#, #"args = ["mcp", "linear"]"#]),
            Tool(name: "cursor", file: ".cursor/mcp.json", former: list("mcpServers"), parts: usual),
            Tool(name: "gemini", file: ".gemini/settings.json", former: list("mcpServers"), parts: usual),
            Tool(
                name: "opencode", file: ".config/opencode/opencode.json", former: list("mcp"),
                parts: [#""linear": {"#, #"["{ringback}", "mcp", "linear"]"#]),
            Tool(name: "vscode", file: ".config/Code/User/mcp.json", former: list("servers"), parts: usual),
            Tool(
                name: "windsurf", file: ".codeium/windsurf/mcp_config.json", former: list("mcpServers"), parts: usual),
            Tool(name: "zed", file: ".config/zed/settings.json", former: list("context_servers"), parts: usual),
        ]
    }

    @Test(arguments: Tool.all)
    func `an entry with an absolute path is added beside the others, and removed again`(tool: Tool) async throws {
        try await Stage.play(Self.account, startsDaemon: false) { stage in
            let path = "\(stage.directory)/home/\(tool.file)"
            try await makeFolder(of: path, on: stage)
            // As from a directory of dotfiles.
            let file = "\(stage.directory)/dotfile"
            try stage.write(tool.former, to: file, mode: 0o640)
            #expect(unsafe symlink(file, path) == 0)

            let shown = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--print")
            #expect(shown.status == 0 && shown.out.hasPrefix("\(path): add linear: "), "\(shown)")
            #expect(FileTree.text(of: file) == tool.former)
            let done = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes")
            #expect(done.status == 0 && done.out == shown.out, "\(done)")
            let text = FileTree.text(of: file) ?? ""
            #expect(text.contains("mine") && text.contains("/bin/other"), "\(text)")
            var rest = text[...]
            for part in tool.parts.map({ $0.replacing("{ringback}", with: Programs.path("ringback")) }) {
                let found = try #require(rest.firstRange(of: part), "\(part): \(text)")
                rest = rest[found.upperBound...]
            }
            #expect(FileTree.target(of: path) == file && FileTree.mode(of: file) == 0o640)
            let again = try await stage.ringback("mcp", "add-to", tool.name, "linear")
            #expect(again.status == 0 && again.out.isEmpty && again.err.contains("nothing to change"), "\(again)")

            let undone = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--undo", "--yes")
            #expect(undone.status == 0 && FileTree.text(of: file) == tool.former, "\(undone)")
            let nothing = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--undo", "--yes")
            #expect(nothing.status == 0 && nothing.err.contains("nothing to remove"), "\(nothing)")

            // Another server of this name is not replaced, and not removed.
            let other = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--name", "other", "--yes")
            #expect(other.status != 0 && other.err.contains("another server called other"), "\(other)")
            let kept = try await stage.ringback(
                "mcp", "add-to", tool.name, "linear", "--name", "other", "--undo", "--yes")
            #expect(kept.out.isEmpty && kept.err.contains("It stays"), "\(kept)")
            #expect(FileTree.text(of: file) == tool.former)
        }
    }

    @Test func `an account without an MCP server is refused, if the daemon knows that`() async throws {
        try await Stage.play(Self.account) { stage in
            for (account, words) in [("work", "not an account at an MCP server"), ("liner", "no account “liner”")] {
                let refused = try await stage.ringback("mcp", "add-to", "cursor", account, "--yes")
                #expect(refused.status != 0 && refused.err.contains(words), "\(refused)")
            }
            #expect(FileTree.text(of: "\(stage.directory)/home/.cursor/mcp.json") == nil)
            #expect(try await stage.ringback("mcp", "add-to", "cursor", "linear", "--yes").status == 0)
            // What was written can be removed after the account was.
            try stage.write(configuration: Stage.twoAccounts)
            #expect(try await stage.ringback("reload").status == 0)
            #expect(try await stage.ringback("mcp", "add-to", "cursor", "linear", "--undo", "--yes").status == 0)
        }
    }

    private func makeFolder(of path: String, on stage: Stage) async throws {
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        let made = try await stage.run("/bin/mkdir", ["-p", folder])
        #expect(made.status == 0, "\(made)")
    }
}
