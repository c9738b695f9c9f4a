import ArgumentParser
import Glibc
import HTTPMessages
import MCPBridge
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// What AI tools need to use the MCP server of an account.
struct MCPVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp",
        abstract: "Speak MCP on standard input and output, with an account's MCP server behind it.",
        discussion:
            "ringback mcp ACCOUNT is what an AI tool starts; ringback mcp add-to writes that into its configuration.",
        subcommands: [ServeMCP.self, AddToTool.self], defaultSubcommand: ServeMCP.self)
}

/// An MCP server on standard input and output, for any MCP client.
struct ServeMCP: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Speak MCP on standard input and output, with an account's MCP server behind it.",
        discussion: """
            Put it into the configuration of MCP clients as a stdio server. Any number of them share the account's \
            session. Nothing but MCP messages stands on standard output. If nobody is signed in, standard error has the \
            command that signs in.
            """)

    @Argument(help: "The account, or its MCP server's URL.", completion: Completions.accounts)
    var account: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        signal(SIGPIPE, SIG_IGN)
        var status: Int32 = 0
        try present(account: account.contains("://") ? nil : account) { () throws(RingbackError) in
            let calls = try daemon.calls()
            let name = try ServeMCP.name(of: account, calls)
            let isExposed = try calls.call(.getMCPServer, [name])["exposed_socket"] != nil
            let relay = try RelayPlace(daemon: calls.socket, isExposed: isExposed)
            let bridge = Bridge(account: name) { scope in
                "ringback login \(name)" + (scope.map { " --scopes \"\($0)\"" } ?? "")
            }
            status = try BridgeLoop(bridge, relay, Signals.interruption()).run()
        }
        if status != 0 { throw ExitCode(status) }
    }

    /// The account that was named, or whose server has the URL.
    ///
    /// - Throws: `account_not_found`, `method_unsupported` for an account that is not at an MCP server.
    private static func name(of text: String, _ calls: BrokerCalls) throws(RingbackError) -> String {
        guard text.contains("://") else { return text }
        let wanted = try? WebURL(parsing: text)
        for entry in try calls.call(.listAccounts)["accounts"]?.array ?? [] where entry["provider"]?.string == "mcp" {
            guard let name = entry["name"]?.string,
                let url = try calls.call(.getMCPServer, [name])["url"]?.string.flatMap({ try? WebURL(parsing: $0) }),
                url == wanted || wanted.map({ RedirectRule.allows(308, from: url, to: $0.text) }) == true
            else { continue }
            return name
        }
        let shown = Sanitizer.line(text, limit: 200)
        throw RingbackError(
            .accountNotFound, "No account is at \(shown). Run: ringback account add NAME --mcp \(shown)")
    }
}
