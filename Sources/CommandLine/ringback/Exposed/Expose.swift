import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ExposeVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "expose", abstract: "Show accounts through a restricted socket: to a container, or over SSH.",
        discussion: """
            ringback expose NAME makes a socket that serves only the access tokens of the named accounts, limited to \
            --scope, and who is signed in to them. With --mcp it serves the MCP server of one account instead, and no \
            token. Prints where it is.
            """,
        subcommands: [ExposeCreate.self, ExposeList.self, ExposeRevoke.self], defaultSubcommand: ExposeCreate.self)
}

struct ExposeCreate: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Make a restricted socket (create may be left out).",
        discussion: "Tokens that it has issued stay valid until they expire, also after its end.")

    /// These names would be read as verbs.
    private static let reserved: Set = ["create", "list", "revoke", "help"]

    @Argument(help: "The socket's name.") var name: String

    @Option(help: .value("name", "An account to show; may be repeated."), completion: Completions.accounts)
    var account: [String] = []

    @Option(help: .value("scopes", "The scopes that a token may have at most, space-separated.")) var scope: String?
    @Option(help: .value("span", "Its lifetime: 90s, 15m, 8h, 7d. Without it, until revoke.")) var ttl: String?
    @Flag(help: "Give proofs with tokens that are bound to a key (DPoP), too.") var proof = false
    @Option(help: .value("uid", "Another user who may connect; may be repeated.")) var allowUid: [UInt32] = []
    @Option(help: .value("app-id", "Also make it in the directory of this Flatpak app.")) var flatpak: String?
    @Flag(help: "Serve the account's MCP server to ringback mcp, and no token.") var mcp = false

    @Option(help: .value("name", "With --mcp: a tool that may be called; may be repeated. Without it, all."))
    var tool: [String] = []

    @Option(
        help: .value(
            "name", "With --mcp: a method that may be called; may be repeated. Without it, tools/list and tools/call."))
    var method: [String] = []

    @OptionGroup var options: CallOptions

    func validate() throws {
        try require(RequestTarget.isAccountName(name), AccountAdd.nameRule)
        try require(
            !ExposeCreate.reserved.contains(name),
            "A restricted socket cannot be called \(name): that is a verb of expose.")
        try require(!account.isEmpty, "Name what to show: --account NAME.")
        try require(scope?.allSatisfy { $0 == " " } != true, "--scope must not be empty; leave it out for no limit.")
        try require(
            ttl.map { TimeSpan.seconds(of: $0) != nil } ?? true, "--ttl must be a span such as 90s, 15m, 8h or 7d.")
        try require(mcp || (tool.isEmpty && method.isEmpty), "--tool and --method need --mcp.")
        try require(!mcp || scope == nil, "--scope cannot be combined with --mcp: no token is served.")
        try require(!mcp || !proof, "--proof cannot be combined with --mcp: no token is served.")
        try require(!mcp || account.count == 1, "--mcp is for one account.")
    }

    func run() throws {
        let access: JSONObject = ["tools": tool.isEmpty ? nil : tool, "methods": method.isEmpty ? nil : method]
        let body: JSONObject = [
            "name": name, "scope": scope, "flatpak": flatpak, "accounts": account,
            "ttl": ttl.flatMap { TimeSpan.seconds(of: $0) }, "proof": proof ? true : nil,
            "allow_uids": allowUid.isEmpty ? nil : allowUid.map { Int($0) }, "mcp": mcp ? access : nil,
        ]
        let socket = try advising(
            ExposeList.advice, on: .stateConflict, call: daemon.calls().call(.createExposedSocket, body: .object(body)))
        guard !json.isWanted else { return Output.json(socket) }
        Output.line(socket.shown(socket["flatpak_socket"] == nil ? "socket" : "flatpak_socket"))
        for line in ExposeCreate.notes(socket) { Output.note(Sanitizer.line(line, limit: 4_000)) }
    }

    private static func notes(_ socket: JSON) -> [String] {
        let name = socket.text("name")
        let accounts = socket.texts("accounts").joined(separator: ", ")
        let scope = socket["scope"]?.string.map { ", for at most “\($0)”" } ?? ""
        let end = socket["expires_at"]?.integer.map { ", until \(TimeText.dateAndTime($0))" } ?? ""
        var lines = ["It serves the access tokens of \(accounts)\(scope)\(end), and who is signed in: nothing else."]
        if let mcp = socket["mcp"] {
            lines = [
                "It serves the MCP server of \(accounts) with \(ExposeList.tools(mcp))\(end), and no token.",
                "What runs there: \(shown: "ringback mcp \(accounts)")",
            ]
        }
        if let app = socket["flatpak"]?.string, let socket = socket["flatpak_socket"]?.string {
            lines.append("For the app: \(shown: "flatpak override --user --env=RINGBACK_SOCK=\(socket) \(app)")")
        } else if let directory = socket["directory"]?.string {
            lines.append("For a container: mount \(directory), and let RINGBACK_SOCK name the file “socket” in it.")
        }
        let remarks = socket.texts("notes").map { "Note: \($0)" }
        return lines + remarks + ["To end it: \(shown: "ringback expose revoke \(name)")"]
    }
}

struct ExposeList: DaemonVerb {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the restricted sockets.")

    @OptionGroup var options: CallOptions

    static let advice = "See: ringback expose list"

    func run() throws {
        let answer = try daemon.calls().call(.listExposedSockets)
        try json.printList(
            answer, "exposed_sockets", ["NAME", "ACCOUNTS", "SCOPE", "UIDS", "VALID", "MADE BY", "SOCKET"],
            none: "Nothing is exposed. Run: ringback expose NAME --account ACCOUNT", ExposeList.cells)
        if !json.isWanted { for entry in answer.list("closed") { Output.note(ExposeList.line(closed: entry)) } }
    }

    private static func line(closed entry: JSON) -> String {
        let name = entry.text("name")
        let step = step(entry, name).map { " \($0)" } ?? ""
        return Sanitizer.line("Not exposed: \(name). \(entry.text("detail"))\(step)", limit: 4_000)
    }

    private static func step(_ entry: JSON, _ name: String) -> String? {
        guard RequestTarget.isAccountName(name) else { return nil }
        switch entry["reason"]?.string {
        case "name_taken":
            return "To revoke that one: \(shown: "ringback expose revoke \(name)"), and then ringback reload"
        case "account_changed": return "To revoke it: \(shown: "ringback expose revoke \(name)")"
        default:
            return entry["path"]?.string.map {
                "Run: \(shown: PathTrouble.openToOthers.command(for: $0, user: geteuid()))"
            }
        }
    }

    static func tools(_ mcp: JSON) -> String {
        guard let tools = mcp["tools"]?.array?.compactMap(\.string) else { return "all tools" }
        return tools.isEmpty ? "no tools" : tools.joined(separator: ", ")
    }

    private static func cells(_ socket: JSON) -> [String] {
        let uids = socket.list("allow_uids").compactMap { $0.integer.map(String.init) }
        return [
            socket.text("name"), socket.texts("accounts").joined(separator: ","),
            socket["mcp"].map { "MCP: \(tools($0))" } ?? socket["scope"]?.string ?? "any",
            uids.isEmpty ? "own" : "own," + uids.joined(separator: ","),
            TimeText.validity(until: socket["expires_at"]?.integer, now: TimeText.now()),
            socket["source"]?.string == "api" ? "expose" : socket.text("source"),
            socket["flatpak_socket"]?.string ?? socket.text("socket"),
        ]
    }
}

struct ExposeRevoke: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "End a restricted socket and its connections.",
        discussion: "Tokens that it has issued stay valid until they expire.")

    @Argument(help: "The socket's name.") var name: String
    @OptionGroup var options: CallOptions

    func run() throws {
        let socket = try advising(
            ExposeList.advice, on: .notFound, call: daemon.calls().call(.revokeExposedSocket, [name]))
        json.print(socket, or: "\(Sanitizer.line(socket["name"]?.string ?? name)) is no longer exposed.")
        guard !json.isWanted, let source = socket["source"]?.string, source != "api" else { return }
        Output.note("It stays closed until its table in the configuration is changed: \(socket.shown("source"))")
    }
}
