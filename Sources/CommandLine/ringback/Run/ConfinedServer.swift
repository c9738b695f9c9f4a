import RingbackBase
import RingbackClient
import Terminal

/// `--mcp` and `--tool`: an account's MCP server that a confined command may use. The command has no token.
struct ConfinedServer {
    let account: String
    /// The tools that are listed and may be called; nil for all of them.
    let tools: [String]?

    /// - Parameters:
    ///   - accounts: one that stands there twice is one server.
    ///   - tools: of the only server, or `ACCOUNT:TOOL`.
    static func all(_ accounts: [String], _ tools: [String]) throws -> [ConfinedServer] {
        let names = accounts.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        try require(names.allSatisfy(RequestTarget.isAccountName), "--mcp must be an account. \(AccountAdd.nameRule)")
        try require(tools.isEmpty || !names.isEmpty, "--tool needs --mcp.")
        try require(
            names.count < 2 || tools.allSatisfy { tool in names.contains { tool.hasPrefix("\($0):") } },
            "With several --mcp, --tool is ACCOUNT:TOOL.")
        return names.map { name in
            let mark = "\(name):"
            let own = tools.filter { names.count == 1 || $0.hasPrefix(mark) }.map {
                $0.hasPrefix(mark) ? String($0.dropFirst(mark.utf8.count)) : $0
            }
            return ConfinedServer(account: name, tools: own.isEmpty ? nil : own)
        }
    }

    /// What an MCP client inside starts.
    var command: ShownCommand { ShownCommand(words: ["ringback", "mcp", account]) }

    var text: String { "the MCP server of \(account), with \(tools?.joined(separator: ", ") ?? "all tools")" }

    /// The body of the call for its socket.
    var order: JSONObject { ["accounts": [account], "mcp": ["tools": tools] as JSONObject] }
}
