public import MCPBridge
internal import OAuth
internal import RingbackBase

/// `[[expose]]`: a restricted socket for some accounts. It exists as long as the table is in the configuration.
public struct ExposeConfiguration: Sendable, Equatable {
    /// The socket's name.
    public let name: String
    public let accounts: [String]
    /// The maximum scopes of the tokens; nil for no limit.
    public let scopes: [String]?
    /// Other users who may connect.
    public let allowedUIDs: [UInt32]
    /// In seconds from when the daemon reads the table; nil for no limit.
    public let lifetime: Int?
    /// What may be asked of the account's MCP server, if that is what is exposed.
    public let mcp: MessageRule?
    public let source: ConfigurationSource

    static let most = 32
    private static let maxAccounts = 64
    private static let maxScopes = 64
    private static let maxUIDs = 16
    private static let longestLifetime = 31_536_000
    private static let maxTools = 256
}

extension ExposeConfiguration {
    /// Reads one table; nil if it has an error.
    static func read(_ number: Int, _ node: TOMLDocument.Node, check: inout KeyCheck) -> ExposeConfiguration? {
        guard case .table(let members) = node.value else { return nil }
        var reader = Reader(
            table: TOMLTableReader(members), node: node, path: ["expose", String(number)], check: check)
        defer { check = reader.check }
        return reader.read()
    }

    /// Reports accounts that are not configured. Called after all files were read.
    func mistakes(_ known: [String: AccountConfiguration]) -> [ConfigurationError] {
        let names = known.keys
        if mcp != nil, let account = accounts.first.flatMap({ known[$0] }) {
            guard case .mcp = account.provider else {
                return [
                    ConfigurationError(
                        file: source.file, line: source.line, key: "expose.\(name)",
                        message: "mcp needs an account at an MCP server, and \(account.name) is none")
                ]
            }
        }
        return accounts.filter { !names.contains($0) }.map { name in
            let nearest = NearestWord.find(for: name, among: names).map { "; did you mean \($0)?" } ?? ""
            return ConfigurationError(
                file: source.file, line: source.line, key: "expose.\(self.name)",
                message: "it names an account that does not exist\(nearest)")
        }
    }

    /// Hints for the user, one sentence each.
    func notes(_ accounts: [AccountConfiguration]) -> [String] {
        guard let scopes else { return [] }
        return accounts.filter { self.accounts.contains($0.name) }.compactMap { account in
            if case .supabase = account.provider {
                return "\(account.name) is at a Supabase project, whose tokens cannot be downscoped: none of them will "
                    + "be served. Leave the scope out."
            }
            // A service account can request other scopes with each token request.
            guard account.service == nil else { return nil }
            return TokenDownscoping.remark(on: account.name, below: scopes, of: account.scopes)
        }
    }

    private struct Reader {
        let table: TOMLTableReader
        let node: TOMLDocument.Node
        let path: [String]
        var check: KeyCheck

        mutating func read() -> ExposeConfiguration? {
            let before = check.errors.count
            let name = table.string("name") ?? ""
            if !table.has("name") {
                if !isMistaken("name") { refuse(nil, "needs name: the socket is exposed/NAME.sock") }
            } else if !AccountReader.isName(name) {
                refuse("name", "begins with a-z or 0-9 and goes on with up to 63 of a-z, 0-9, '.', '_', '-'")
            }
            let expose = ExposeConfiguration(
                name: name, accounts: readAccounts(), scopes: readScopes(), allowedUIDs: readUIDs(),
                lifetime: readLifetime(), mcp: readMCP(), source: ConfigurationSource(file: check.file, line: node.line)
            )
            return check.errors.count == before ? expose : nil
        }

        private mutating func refuse(_ key: String?, _ message: String) {
            check.refuse(key.flatMap { table.node($0) } ?? node, path + (key.map { [$0] } ?? []), message)
        }

        /// True if the key is written, but has an error that is reported already. It must not be reported as missing
        /// too.
        private func isMistaken(_ key: String) -> Bool {
            let path = path + [key]
            return check.mistaken.contains(path) || check.errors.contains { $0.key == KeyCheck.display(path) }
        }

        private mutating func readAccounts() -> [String] {
            var names = (table.strings("accounts") ?? []).map(\.text)
            if let one = table.string("account") { names.append(one) }
            // Having both keys is an error: it is unclear which one is meant.
            if table.has("account"), table.has("accounts") {
                refuse("account", "cannot be combined with accounts: use one of the two")
            }
            if names.isEmpty, !isMistaken("account"), !isMistaken("accounts") {
                refuse(nil, "needs account or accounts: which ones to expose")
            }
            if names.count > maxAccounts { refuse("accounts", "may have \(maxAccounts) at most") }
            if Set(names).count < names.count { refuse("accounts", "the same account is listed twice") }
            return names
        }

        private mutating func readScopes() -> [String]? {
            guard let text = table.string("scope") else { return nil }
            let scopes = text.split(separator: " ").map(String.init)
            if scopes.isEmpty || scopes.count > maxScopes {
                refuse("scope", "is 1 to \(maxScopes) scopes with spaces between them; leave it out for no ceiling")
            } else if !scopes.allSatisfy({ $0.utf8.allSatisfy(ScopeList.isCharacter) }) {
                refuse("scope", "a scope is printable ASCII without quotes and backslashes")
            }
            return scopes
        }

        private mutating func readUIDs() -> [UInt32] {
            let uids = table.integers("allow_uids") ?? []
            if uids.count > maxUIDs { refuse("allow_uids", "may have \(maxUIDs) at most") }
            for (number, node) in uids where number == 65_534 {
                check.refuse(
                    node, path + ["allow_uids"], "65534 is the uid of all users that this system does not know")
            }
            return uids.compactMap { UInt32(exactly: $0.number) }
        }

        private mutating func readMCP() -> MessageRule? {
            let isMCP = table.boolean("mcp") ?? false
            for key in ["tools", "methods"] where !isMCP && table.has(key) && !isMistaken("mcp") {
                refuse(key, "belongs to mcp = true only")
            }
            guard isMCP else { return nil }
            if table.has("scope") { refuse("scope", "cannot be combined with mcp: no token is served") }
            if (table.strings("accounts") ?? []).count > 1 { refuse("accounts", "mcp is for one account") }
            let tools = table.strings("tools")?.map(\.text)
            if let tools, tools.count > maxTools || !tools.allSatisfy(MessageRule.isToolName) {
                refuse("tools", "is up to \(maxTools) names of tools, without control characters")
            }
            let methods = table.strings("methods")?.map(\.text)
            if let method = methods?.first(where: { !MessageRule.known.contains($0) }) {
                let nearest = NearestWord.find(for: method, among: MessageRule.known)
                let hint = nearest.map { "; did you mean \($0)?" } ?? ""
                refuse("methods", "names no method that a client may call\(hint)")
            }
            return MessageRule(tools: tools, methods: methods)
        }

        private mutating func readLifetime() -> Int? {
            guard table.has("ttl") else { return nil }
            guard let seconds = table.span("ttl"), (1...longestLifetime).contains(seconds) else {
                refuse("ttl", "is seconds, or a span such as \"90m\", \"8h\" or \"7d\"; a year at most")
                return nil
            }
            return seconds
        }
    }
}
