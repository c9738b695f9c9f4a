public import RingbackBase

/// An AI tool that starts MCP servers, and where its configuration lists them.
public enum AITool: String, Sendable, CaseIterable {
    case claude
    case claudeDesktop = "claude-desktop"
    case codex, copilot, cursor, gemini, opencode, qwen, vscode, windsurf, zed

    /// How the tool writes its list.
    public enum Form: Sendable, Equatable {
        /// JSON, with the entries in the member of this name.
        case json(member: String)
        /// TOML, with a table below `mcp_servers` for each server.
        case toml
    }

    public var form: Form {
        switch self {
        case .claude, .claudeDesktop, .copilot, .cursor, .gemini, .qwen, .windsurf: .json(member: "mcpServers")
        case .vscode: .json(member: "servers")
        case .opencode: .json(member: "mcp")
        case .zed: .json(member: "context_servers")
        case .codex: .toml
        }
    }

    /// Where the user's own configuration of the tool is, relative to the home directory or, if `isConfiguration`, to
    /// `$XDG_CONFIG_HOME`.
    public var place: (path: String, isConfiguration: Bool) {
        switch self {
        case .claude: (".claude.json", false)
        case .claudeDesktop: ("Claude/claude_desktop_config.json", true)
        case .codex: (".codex/config.toml", false)
        case .copilot: (".copilot/mcp-config.json", false)
        case .cursor: (".cursor/mcp.json", false)
        case .gemini: (".gemini/settings.json", false)
        case .opencode: ("opencode/opencode.json", true)
        case .qwen: (".qwen/settings.json", false)
        case .vscode: ("Code/User/mcp.json", true)
        case .windsurf: (".codeium/windsurf/mcp_config.json", false)
        case .zed: ("zed/settings.json", true)
        }
    }

    /// The other name that the file may have, in the same directory; nil if there is none.
    public var otherName: String? { self == .opencode ? "opencode.jsonc" : nil }

    /// The environment variable that names the directory of this configuration, in place of that of ``place``; nil if the
    /// tool has none.
    public var variable: String? {
        switch self {
        case .claude: "CLAUDE_CONFIG_DIR"
        case .codex: "CODEX_HOME"
        case .copilot: "COPILOT_HOME"
        default: nil
        }
    }

    /// The entry of a server that is a program.
    public func entry(_ program: String, _ arguments: [String]) -> JSONObject {
        let words = arguments.map { JSON.string($0) }
        let command: [JSONObject.Member] = [.init("command", .string(program)), .init("args", .array(words))]
        return switch self {
        case .claude, .vscode: JSONObject([.init("type", "stdio")] + command)
        case .opencode:
            JSONObject([
                .init("type", "local"), .init("command", .array([.string(program)] + words)), .init("enabled", true),
            ])
        case .copilot: JSONObject([.init("type", "local")] + command + [.init("tools", ["*"])])
        case .zed: JSONObject([.init("source", "custom")] + command)
        case .claudeDesktop, .codex, .cursor, .gemini, .qwen, .windsurf: JSONObject(command)
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
