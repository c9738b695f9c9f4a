internal import MCPBridge
internal import RingbackBase

/// `[run.NAME]`: what `ringback run NAME` gives to a command. Each key has the name of the option.
public struct RunConfiguration: Sendable, Equatable {
    enum Network: String, CaseIterable { case internet, intranet, none }

    let name: String
    /// A program and its arguments; empty if the table has none.
    let command: [String]
    let accounts: [String]
    let scopes: [String]?
    /// The accounts whose MCP servers it may use.
    let servers: [String]
    /// Tools of the only server, or each `ACCOUNT:TOOL`; empty for all of them.
    let tools: [String]
    /// Each `VARIABLE=URL`.
    let relayed: [String]
    /// Absolute.
    let readable: [String]
    /// Absolute.
    let writable: [String]
    let home: String?
    let network: Network?
    let isNested: Bool
    let hasDisplay: Bool
    let variables: [String]
    let source: ConfigurationSource

    /// The maximum number of values of a key.
    static let most = 64

    /// Called after all files were read.
    func mistakes(knowing known: some Sequence<String>) -> [ConfigurationError] {
        let known = Array(known)
        return (accounts + servers).filter { !known.contains($0) }.map {
            source.noAccount($0, at: "run.\(name)", among: known)
        }
    }

    /// `{"name","command","accounts","scope"?,"mcp","tool","relay","read","write","home"?,"network"?,"nested","display",
    /// "env","source"}`.
    var json: JSONObject {
        [
            "name": name, "command": command, "accounts": accounts, "scope": scopes?.joined(separator: " "),
            "mcp": servers, "tool": tools, "relay": relayed, "read": readable, "write": writable, "home": home,
            "network": network?.rawValue, "nested": isNested, "display": hasDisplay, "env": variables,
            "source": source.json,
        ]
    }
}

struct RunReader {
    let table: SettingTable

    func read() -> RunConfiguration {
        if !table.name.isAccountName { table.refuse(nil, "the name \(AccountReader.nameRule)") }
        let accounts = texts("account", "is an account's name", where: \.isAccountName)
        if accounts.isEmpty, !table.isMistaken("account") {
            table.refuse(anyOf: ["scope"], "limits the tokens of account, which is missing")
        }
        let servers = texts("mcp", "is an account's name", where: \.isAccountName)
        if servers.isEmpty, !table.isMistaken("mcp") {
            table.refuse(anyOf: ["tool"], "is one of mcp, which is missing")
        }
        // In a table [[expose]] this allows no tool; no option `--tool` allows all.
        if table.strings("tool")?.isEmpty == true {
            table.refuse("tool", "names a tool; without the key there are all")
        }
        return RunConfiguration(
            name: table.name, command: readCommand(), accounts: accounts, scopes: table.scopes(),
            servers: servers,
            tools: texts("tool", "is a tool's name, without control characters", where: MessageRule.isToolName),
            relayed: texts("relay", "is VARIABLE=URL", where: isRelayed), readable: folders("read"),
            writable: folders("write"),
            home: table.text("home", "has 1 to 64 letters, digits, '.', '-' and '_', and no '.' first", where: isHome),
            network: table.word("network"), isNested: table.boolean("nested") ?? false,
            hasDisplay: table.boolean("display") ?? false,
            variables: texts(
                "env", "begins with a letter or an underscore and goes on with letters, digits and underscores",
                where: \.isVariableName),
            source: table.source)
    }

    private func readCommand() -> [String] {
        guard let written = table.strings("command") else { return [] }
        var command = written.map(\.text)
        guard let program = written.first, !program.text.isEmpty else {
            table.refuse("command", "must have a program, and may have arguments")
            return []
        }
        if program.text.hasPrefix("~/") {
            command[0] = table.place.path(program.text) ?? program.text
        } else if program.text.contains("/"), !program.text.hasPrefix("/") {
            // It would be another program in each folder, of the folder's choice.
            table.refuse(
                "command", program.node, "begins with a program: a name, or an absolute path, or ~/ and a path")
        }
        return command
    }

    /// A relative path would be another folder in each work folder.
    private func folders(_ key: String) -> [String] {
        texts(key, "must be an absolute path, or begin with ~/") { table.place.path($0) != nil }
            .compactMap(table.place.path)
    }

    private func texts(_ key: String, _ rule: String, where isValid: (String) -> Bool) -> [String] {
        let texts = table.texts(key)
        if texts.count > RunConfiguration.most { table.refuse(key, "may have \(RunConfiguration.most) values at most") }
        for (text, node) in texts where !isValid(text) { table.refuse(key, node, rule) }
        return texts.map(\.text)
    }

    private func isRelayed(_ text: String) -> Bool {
        let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
        return parts.count == 2 && parts[0].isVariableName
    }

    private func isHome(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { $0.isLetterOrDigit || ".-_".utf8.contains($0) }
    }
}
