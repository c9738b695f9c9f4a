public import RingbackBase

/// An AI tool that starts MCP servers, and where its configuration lists them.
public enum AITool: String, Sendable, CaseIterable {
    case amp, claude
    case claudeDesktop = "claude-desktop"
    case codex, copilot, cursor, gemini, opencode, qwen, vscode, windsurf, zed

    public enum Form: Sendable, Equatable {
        /// JSON, with the entries in the member of this name.
        case json(member: String)
        /// TOML, with a table below `mcp_servers` for each server.
        case toml
    }

    /// The member of the JSON with the entries (nil for TOML); where the user's own configuration is, relative to
    /// `$XDG_CONFIG_HOME` or to the home directory; and the variable that names its directory in place of that.
    private var row: (member: String?, isConfiguration: Bool, path: String, variable: String?) {
        switch self {
        case .amp: ("amp.mcpServers", true, "amp/settings.json", nil)
        case .claude: ("mcpServers", false, ".claude.json", "CLAUDE_CONFIG_DIR")
        case .claudeDesktop: ("mcpServers", true, "Claude/claude_desktop_config.json", nil)
        case .codex: (nil, false, ".codex/config.toml", "CODEX_HOME")
        case .copilot: ("mcpServers", false, ".copilot/mcp-config.json", "COPILOT_HOME")
        case .cursor: ("mcpServers", false, ".cursor/mcp.json", nil)
        case .gemini: ("mcpServers", false, ".gemini/settings.json", nil)
        case .opencode: ("mcp", true, "opencode/opencode.json", nil)
        case .qwen: ("mcpServers", false, ".qwen/settings.json", nil)
        case .vscode: ("servers", true, "Code/User/mcp.json", nil)
        case .windsurf: ("mcpServers", false, ".codeium/windsurf/mcp_config.json", nil)
        case .zed: ("context_servers", true, "zed/settings.json", nil)
        }
    }

    public var form: Form { row.member.map { .json(member: $0) } ?? .toml }

    /// Relative to the home directory or, if `isConfiguration`, to `$XDG_CONFIG_HOME`.
    public var place: (path: String, isConfiguration: Bool) { (row.path, row.isConfiguration) }

    /// The other name that the file may have, in the same directory.
    public var otherName: String? { self == .opencode ? "opencode.jsonc" : nil }

    /// The environment variable that names the directory of this configuration, in place of that of ``place``.
    public var variable: String? { row.variable }

    public func entry(_ program: String, _ arguments: [String]) -> JSONObject {
        switch self {
        case .claude, .vscode: ["type": "stdio", "command": program, "args": arguments]
        case .opencode: ["type": "local", "command": [program] + arguments, "enabled": true]
        case .copilot: ["type": "local", "command": program, "args": arguments, "tools": ["*"]]
        case .zed: ["source": "custom", "command": program, "args": arguments]
        case .amp, .claudeDesktop, .codex, .cursor, .gemini, .qwen, .windsurf: ["command": program, "args": arguments]
        }
    }

    /// The program and its arguments of an entry; nil if it is no program.
    public func words(of entry: JSON) -> [String]? {
        // The former form of zed has program and arguments in an object.
        let entry = self == .zed && entry["command"]?.object != nil ? entry["command"] ?? .null : entry
        let program = entry["command"] ?? (self == .zed ? entry["path"] : nil)
        let command = self == .opencode ? program?.array : program.map { [$0] }
        let arguments = self == .opencode ? [] : entry["args"]?.array ?? []
        guard let command else { return nil }
        let words = (command + arguments).compactMap(\.string)
        return words.count == command.count + arguments.count && !words.isEmpty ? words : nil
    }

    /// The account of an entry that starts `ringback mcp ACCOUNT` by an absolute path; nil for another one.
    public static func account(of words: [String]) -> String? {
        words.count == 3 && words[0].hasPrefix("/") && words[0].hasSuffix("/ringback") && words[1] == "mcp"
            ? words[2] : nil
    }
}
