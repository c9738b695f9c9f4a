public import MCPBridge
internal import OAuth
internal import RingbackBase

/// `[[expose]]`: a restricted socket for some accounts. It exists as long as the table is in the configuration.
public struct ExposeConfiguration: Sendable, Equatable {
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
    /// It gives proofs with tokens that are bound to a key, too.
    public let givesProofs: Bool
    public let source: ConfigurationSource

    static let most = 32
    static let maxAccounts = 64
    static let maxUIDs = 16
    static let longestLifetime = 31_536_000
    static let maxTools = 256
}

extension ExposeConfiguration {
    /// Reports accounts that are not configured. Called after all files were read.
    func mistakes(_ known: [String: AccountConfiguration]) -> [ConfigurationError] {
        let names = known.keys
        if mcp != nil, let account = accounts.first.flatMap({ known[$0] }) {
            guard case .mcp = account.provider else {
                return [mistake("mcp needs an account at an MCP server, and \(account.name) is none")]
            }
        }
        return accounts.filter { !names.contains($0) }.map { account in
            source.noAccount(account, at: "expose.\(name)", among: names)
        }
    }

    func mistake(_ message: String, cause: ConfigurationError.Cause? = nil) -> ConfigurationError {
        source.mistake("expose.\(name)", message, cause: cause)
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
}

struct ExposeReader {
    let table: SettingTable

    func read() -> ExposeConfiguration {
        table.refuseMissing("name", "needs name: the socket is exposed/NAME.sock")
        return ExposeConfiguration(
            name: table.text("name", AccountReader.nameRule, where: \.isAccountName) ?? "",
            accounts: readAccounts(), scopes: table.scopes(without: "; leave it out for no ceiling"),
            allowedUIDs: readUIDs(), lifetime: table.lifetime(atMost: ExposeConfiguration.longestLifetime),
            mcp: readMCP(), givesProofs: table.boolean("proof") ?? false, source: table.source)
    }

    private func readAccounts() -> [String] {
        var names = (table.strings("accounts") ?? []).map(\.text)
        if let one = table.string("account") { names.append(one) }
        if table.has("account"), table.has("accounts") {
            table.refuse("account", "cannot be combined with accounts: use one of the two")
        }
        if names.isEmpty, !table.isMistaken("account"), !table.isMistaken("accounts") {
            table.refuse(nil, "needs account or accounts: which ones to expose")
        }
        let most = ExposeConfiguration.maxAccounts
        if names.count > most { table.refuse("accounts", "may have \(most) at most") }
        if Set(names).count < names.count { table.refuse("accounts", "the same account is listed twice") }
        return names
    }

    private func readUIDs() -> [UInt32] {
        let (uids, most) = (table.uids("allow_uids"), ExposeConfiguration.maxUIDs)
        if uids.count > most { table.refuse("allow_uids", "may have \(most) at most") }
        return uids
    }

    private func readMCP() -> MessageRule? {
        guard table.boolean("mcp") == true else {
            if !table.isMistaken("mcp") { table.refuse(anyOf: ["tools", "methods"], "belongs to mcp = true only") }
            return nil
        }
        if table.has("scope") { table.refuse("scope", "cannot be combined with mcp: no token is served") }
        if table.boolean("proof") == true { table.refuse("proof", "cannot be combined with mcp: no token is served") }
        if (table.strings("accounts") ?? []).count > 1 { table.refuse("accounts", "mcp is for one account") }
        let tools = table.strings("tools")?.map(\.text)
        if let tools, tools.count > ExposeConfiguration.maxTools || !tools.allSatisfy(MessageRule.isToolName) {
            table.refuse("tools", "is up to \(ExposeConfiguration.maxTools) names of tools, without control characters")
        }
        let methods = table.strings("methods")?.map(\.text)
        if let method = methods?.first(where: { !MessageRule.known.contains($0) }) {
            let hint = NearestWord.hint(for: method, among: MessageRule.known)
            table.refuse("methods", "names no method that a client may call\(hint)")
        }
        return MessageRule(tools: tools, methods: methods)
    }
}
