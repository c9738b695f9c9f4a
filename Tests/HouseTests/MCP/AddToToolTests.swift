import Glibc
import RingbackBase
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
        /// It is taken only if it is there.
        var isOther = false

        var testDescription: String { file }

        private static func list(_ member: String) -> String {
            "{\n  // mine\n  \"theme\": \"One\",\n  \"\(member)\": {\n    \"other\": {\"command\": \"/bin/other\"}\n  }\n}\n"
        }
        private static let usual = [#""linear": {"#, #""command": "{ringback}""#, #""args": ["mcp", "linear"]"#]

        static let all = [
            Tool(name: "amp", file: ".config/amp/settings.json", former: list("amp.mcpServers"), parts: usual),
            Tool(name: "claude", file: ".claude.json", former: list("mcpServers"), parts: usual),
            Tool(
                name: "claude-desktop", file: ".config/Claude/claude_desktop_config.json", former: list("mcpServers"),
                parts: usual),
            Tool(
                name: "codex", file: ".codex/config.toml",
                former: "# mine\nmodel = \"m\"\n\n[mcp_servers.other]\ncommand = \"/bin/other\"\n",
                parts: ["[mcp_servers.linear]", #"command = "{ringback}""#, #"args = ["mcp", "linear"]"#]),
            Tool(
                name: "copilot", file: ".copilot/mcp-config.json", former: list("mcpServers"),
                parts: [#""type": "local""#] + usual.dropFirst() + [#""tools": ["*"]"#]),
            Tool(name: "cursor", file: ".cursor/mcp.json", former: list("mcpServers"), parts: usual),
            Tool(name: "gemini", file: ".gemini/settings.json", former: list("mcpServers"), parts: usual),
            Tool(
                name: "opencode", file: ".config/opencode/opencode.json", former: list("mcp"),
                parts: [#""linear": {"#, #"["{ringback}", "mcp", "linear"]"#]),
            Tool(
                name: "opencode", file: ".config/opencode/opencode.jsonc", former: list("mcp"),
                parts: [#""linear": {"#, #"["{ringback}", "mcp", "linear"]"#], isOther: true),
            Tool(name: "qwen", file: ".qwen/settings.json", former: list("mcpServers"), parts: usual),
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

            let shown = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--print", status: 0)
            #expect(shown.out.hasPrefix("\(path): add linear: "), "\(shown)")
            #expect(FileTree.text(of: file) == tool.former)
            try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes", status: 0, out: shown.out)
            let text = FileTree.text(of: file) ?? ""
            #expect(text.contains("mine") && text.contains("/bin/other"), "\(text)")
            var rest = text[...]
            for part in tool.parts.map({ $0.replacing("{ringback}", with: Programs.path("ringback")) }) {
                let found = try #require(rest.firstRange(of: part), "\(part): \(text)")
                rest = rest[found.upperBound...]
            }
            #expect(FileTree.target(of: path) == file && FileTree.mode(of: file) == 0o640)
            try await stage.ringback(
                "mcp", "add-to", tool.name, "linear", status: 0, out: "", says: "nothing to change")

            let undone = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--undo", "--yes", status: 0)
            #expect(FileTree.text(of: file) == tool.former, "\(undone)")
            try await stage.ringback(
                "mcp", "add-to", tool.name, "linear", "--undo", "--yes", status: 0, says: "nothing to remove")

            // A program that was moved: the entry is repaired, also what its user added to it stays.
            _ = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes")
            let stale = (FileTree.text(of: file) ?? "").replacing(Programs.path("ringback"), with: "/gone/bin/ringback")
            try stage.write(stale, to: file, mode: 0o640)
            let doctor = try await stage.ringback("doctor", "linear")
            #expect((doctor.out + doctor.err).contains("ringback mcp add-to \(tool.name) linear"), "\(doctor)")
            let repaired = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes")
            #expect(repaired.out.contains("in place of /gone/bin/ringback"), "\(repaired)")
            #expect(FileTree.text(of: file) == text)
            try stage.write(stale, to: file, mode: 0o640)
            _ = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--undo", "--yes")
            #expect(FileTree.text(of: file) == tool.former)

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
            try await stage.ringback("mcp", "add-to", "cursor", "linear", "--yes", status: 0)
            // What was written can be removed after the account was.
            try stage.write(configuration: Stage.twoAccounts)
            try await stage.ringback("reload", status: 0)
            try await stage.ringback("mcp", "add-to", "cursor", "linear", "--undo", "--yes", status: 0)
        }
    }

    @Test(arguments: Tool.all.filter { !$0.isOther })
    func `a file that it made is removed again, with its directories, if nothing else is in it`(tool: Tool) async throws
    {
        try await Stage.play(Self.account, startsDaemon: false) { stage in
            let path = "\(stage.directory)/home/\(tool.file)"
            let before = FileTree.names(in: "\(stage.directory)/home").sorted()
            for isUsed in [true, false] {
                try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes", status: 0)
                let text = try #require(FileTree.text(of: path))
                if isUsed {
                    try await stage.ringback("mcp", "add-to", tool.name, "work", "--yes", status: 0)
                    _ = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--undo", "--yes")
                    #expect(FileTree.text(of: path)?.contains("work") == true)
                    _ = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes")
                    _ = try await stage.ringback("mcp", "add-to", tool.name, "work", "--undo", "--yes")
                    #expect(FileTree.text(of: path)?.contains("linear") == true, "\(text)")
                }
                try await stage.ringback(
                    "mcp", "add-to", tool.name, "linear", "--undo", "--yes", status: 0, prints: "rm \(path)")
                #expect(FileTree.text(of: path) == nil)
                #expect(
                    FileTree.names(in: "\(stage.directory)/home").sorted().filter { $0 != ".local" }
                        == before.filter { $0 != ".local" })
            }
            // An empty file of the user's stays.
            try await makeFolder(of: path, on: stage)
            try stage.write(tool.name == "codex" ? "" : "{}\n", to: path, mode: 0o600)
            _ = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--yes")
            _ = try await stage.ringback("mcp", "add-to", tool.name, "linear", "--undo", "--yes")
            #expect(FileTree.text(of: path) != nil)
        }
    }

    @Test(arguments: [
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml"),
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
    ])
    func `the directory that a tool's variable names is used`(tool: String, variable: String, file: String) async throws
    {
        try await Stage.play(Self.account, startsDaemon: false) { stage in
            try await stage.run(
                "/usr/bin/env",
                ["\(variable)=\(stage.directory)/own", Programs.path("ringback"), "mcp", "add-to", tool] + [
                    "linear", "--yes",
                ], status: 0)
            #expect(FileTree.text(of: "\(stage.directory)/own/\(file)")?.contains("linear") == true)
        }
    }

    private func makeFolder(of path: String, on stage: Stage) async throws {
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        try await stage.run("/bin/mkdir", ["-p", folder], status: 0)
    }
}
