public import StrictJSON

/// An AI tool that starts MCP servers, and where its configuration lists them.
public enum AITool: String, Sendable, CaseIterable {
    case claude
    case claudeDesktop = "claude-desktop"
    case codex, cursor, gemini, opencode, vscode, windsurf, zed

    /// How the tool writes its list.
    public enum Form: Sendable, Equatable {
        /// JSON, with the entries in the member of this name.
        case json(member: String)
        /// TOML, with a table below `mcp_servers` for each server.
        case toml
    }

    public var form: Form {
        switch self {
        case .claude, .claudeDesktop, .cursor, .gemini, .windsurf: .json(member: "mcpServers")
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
        case .cursor: (".cursor/mcp.json", false)
        case .gemini: (".gemini/settings.json", false)
        case .opencode: ("opencode/opencode.json", true)
        case .vscode: ("Code/User/mcp.json", true)
        case .windsurf: (".codeium/windsurf/mcp_config.json", false)
        case .zed: ("zed/settings.json", true)
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
        case .zed: JSONObject([.init("source", "custom")] + command)
        case .claudeDesktop, .codex, .cursor, .gemini, .windsurf: JSONObject(command)
        }
    }

    /// The program and its arguments of an entry; nil if it is no program.
    public func words(of entry: JSON) -> [String]? {
        let command = self == .opencode ? entry["command"]?.array : entry["command"].map { [$0] }
        let arguments = self == .opencode ? [] : entry["args"]?.array ?? []
        guard let command else { return nil }
        let words = (command + arguments).compactMap(\.string)
        return words.count == command.count + arguments.count && !words.isEmpty ? words : nil
    }
}
