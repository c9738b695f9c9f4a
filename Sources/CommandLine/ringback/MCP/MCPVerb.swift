import ArgumentParser
import Confinement
import Glibc
import MCPBridge
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct MCPVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp", abstract: ServeMCP.abstract,
        discussion:
            "ringback mcp ACCOUNT is what an AI tool starts; ringback mcp add-to writes that into its configuration.",
        subcommands: [ServeMCP.self, AddToTool.self], defaultSubcommand: ServeMCP.self)
}

struct ServeMCP: ParsableCommand {
    static let abstract = "Speak MCP on standard input and output, with an account's MCP server behind it."
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: abstract,
        discussion: """
            Put it into the configuration of MCP clients as a stdio server. Any number of them share the account's \
            session. Nothing but MCP messages stands on standard output. If nobody is signed in, standard error has the \
            command that signs in.
            """)

    @Argument(help: "The account, or its MCP server's URL.", completion: Completions.accounts) var account: String
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        signal(SIGPIPE, SIG_IGN)
        do throws(RingbackError) {
            let signals = try Signals.interruption()
            // Behind the wall of `ringback run` each server has a socket of its own.
            let confined = RequestTarget.isAccountName(account) ? Wall.socket(ofServer: account) : nil
            let calls = try Daemon.calls(socket: daemon.socket ?? confined.flatMap { Files.exists($0) ? $0 : nil })
            let name = try ServeMCP.name(of: account, calls)
            let isExposed = try ServeMCP.server(of: name, calls)["exposed_socket"] != nil
            let relay = try RelayPlace(daemon: calls.socket, isExposed: isExposed)
            let bridge = Bridge(account: name, intro: isExposed ? Elsewhere.place : "Run:") { scope, again in
                let scopes: ShownCommand = scope.map { "--scopes=\($0)" } ?? ""
                return ShownCommand("ringback login \(name) \(scopes) \(again ? "--again" : "" as ShownCommand)")
            }
            BridgeLoop(bridge, relay, signals).run()
        } catch {
            try refuse(error)
        }
    }

    /// Says why there is no server here, on standard error and to a client in the response to each request.
    private func refuse(_ error: RingbackError) throws {
        let failure = Failure(error: error, account: account.contains("://") ? nil : account)
        failure.show()
        if let signals = try? Signals.interruption(), isatty(STDIN_FILENO) == 0 {
            let detail = failure.lines.joined(separator: " ")
            let refusal = RelayRefusal(
                code: error.kind.rawValue,
                detail: detail.hasPrefix("ringback: ") ? String(detail.dropFirst("ringback: ".count)) : detail)
            BridgeLoop(Bridge(refusing: refusal, command: failure.command), nil, signals).run()
        }
        throw ExitCode(ExitStatus.of(error))
    }

    private static func name(of text: String, _ calls: BrokerCalls) throws(RingbackError) -> String {
        guard text.contains("://") else { return text }
        let shown = Sanitizer.line(text, limit: 200)
        guard let wanted = try? WebURL(parsing: text) else {
            throw RingbackError(.accountNotFound, "\(shown) is no URL of an MCP server.")
        }
        let names = try accounts(calls)
        let found = names.filter { name in
            let url = (try? calls.call(.getMCPServer, [name])["url"]?.string).flatMap { try? WebURL(parsing: $0) }
            return url.map { $0 == wanted || RedirectRule.allows(308, from: $0, to: wanted.text) } ?? false
        }
        guard let first = found.first else {
            throw RingbackError(
                .accountNotFound, "No account is at \(shown). \(known(names))",
                advice: "To add one: \(shown: "ringback account add NAME --mcp=\(text)")")
        }
        guard found.count == 1 else {
            throw RingbackError(
                AccountChoice.kind,
                "Several accounts are at \(shown): \(found.map { Sanitizer.line($0) }.joined(separator: ", ")).",
                advice: "Name one in place of the URL, such as: \(shown: "ringback mcp \(first)")")
        }
        return first
    }

    private static func server(of name: String, _ calls: BrokerCalls) throws(RingbackError) -> JSON {
        try explaining(calls.call(.getMCPServer, [name])) { error in
            let names = (try? accounts(calls)) ?? []
            switch error.kind {
            case .accountNotFound:
                let mayAdd = error["exposed_socket"] == nil && RequestTarget.isAccountName(name)
                return error.with(
                    detail: "There is no account “\(Sanitizer.line(name))”. \(known(names))",
                    advice: mayAdd ? "To add it: \(shown: "ringback account add \(name) --mcp=URL")" : nil)
            case .methodUnsupported: return error.with(detail: "\(error.detail) \(known(names))")
            default: return error
            }
        }
    }

    private static func accounts(_ calls: BrokerCalls) throws(RingbackError) -> [String] {
        try calls.call(.listAccounts).list("accounts").filter { $0["provider"]?.string == "mcp" }
            .compactMap { $0["name"]?.string }
    }

    private static func known(_ names: [String]) -> String {
        let list = names.prefix(20).map { Sanitizer.line($0) }.joined(separator: ", ") + (names.count > 20 ? ", …" : "")
        return names.isEmpty ? "No account is at an MCP server." : "Accounts at MCP servers: \(list)."
    }
}
