import ArgumentParser
import CLinux
import Confinement
import Glibc
import RingbackBase
import RingbackClient
import Terminal

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run a command that reaches nothing but what it is given.",
        discussion: """
            The command sees the system's programs, the present folder, which it may change, a home directory of its own \
            that is kept for this folder, and the Internet. It sees none of your other files and programs, no other \
            service of this machine and no private network. It needs bubblewrap, and passt for a network.

            With a name, the options and the command are those of the table [run.NAME] of your configuration, and those \
            that are typed are added: of a scope, a home, a network and a command the typed one counts.

            The exit status is the command's; 125: the wall could not be built, and nothing has run; 126: the command \
            cannot be started; 127: it was not found.
            """)

    enum Network: String, CaseIterable, ExpressibleByArgument { case internet, intranet, none }

    @Argument(
        help: .value("name", "A table [run.NAME] of the configuration."),
        completion: Completions.runs)
    var name: String?

    @Option(
        help: .value("network", "internet, which is usual; intranet: private networks too; none."))
    var network: Network?

    @Option(
        help: .value("name", "An account whose access token it may have; may be repeated."),
        completion: Completions.accounts)
    var account: [String] = []

    @Option(help: .value("scopes", "The scopes that a token may have at most, space-separated.")) var scope: String?

    @Option(
        help: .value("name", "An account whose MCP server it may use; may be repeated."),
        completion: Completions.accounts)
    var mcp: [String] = []

    @Option(
        help: .value(
            "name", "With --mcp: a tool that it may call; may be repeated. Without it, all. Of several: account:name."))
    var tool: [String] = []

    @Option(
        help: .value(
            "var=url",
            "An address in a variable: what is sent there reaches the URL with the credentials of its origin."))
    var relay: [String] = []

    @Option(help: .value("dir", "A folder to read."), completion: .directory) var read: [String] = []
    @Option(help: .value("dir", "A folder to change."), completion: .directory) var write: [String] = []
    @Option(help: .value("name", "The home directory, by a name of your own.")) var home: String?
    @Option(name: .customLong("env"), help: .value("name", "A variable to pass on.")) var variables: [String] = []
    @Flag(help: "Let the command make sandboxes of its own. It reaches more of the kernel then.") var nested = false
    @Flag(help: "Give it the display. By that it can see and type what you do.") var display = false
    @Flag(help: "Show what the command would see, and run nothing.") var explain = false
    @OptionGroup var daemon: DaemonOptions

    @Argument(
        parsing: .postTerminator, help: .value("cmd", "After --: the command."),
        completion: Completions.command)
    var command: [String] = []

    func validate() throws { if name == nil { try check() } }

    private func check() throws {
        try require(scope == nil || !account.isEmpty, "--scope is for the accounts of --account.")
        _ = try ConfinedServer.all(mcp, tool)
        let usage: ShownCommand = name == nil ? "ringback run -- CMD" : "ringback run NAME -- CMD"
        try require(command.first?.isEmpty == false, "Name the command after --: \(shown: usage).")
        try require(
            home.map { $0.utf8.count <= 64 && !$0.hasPrefix(".") && $0.allSatisfy(Run.isPlain) } ?? true,
            "A home's name has letters, digits, \".\", \"-\" and \"_\" only.")
        try require(variables.allSatisfy(\.isVariableName), "--env must be a variable's name.")
    }

    func run() throws {
        do {
            var run = self
            if let name {
                try RunTable(named: name).fill(&run)
                try run.check()
            }
            try run.start()
        } catch let failure as Failed {
            Output.note("ringback: \(failure.text)")
            throw ExitCode(failure.status)
        } catch let failure as Wall.Failure {
            Output.note("ringback: \(failure.text)")
            throw ExitCode(Failed.wall)
        } catch let error as RingbackError {
            Failure(error: error, account: nil).show()
            throw ExitCode(Failed.wall)
        }
    }

    private func start() throws {
        var wall = try wall()
        let network = network ?? .internet
        guard let place = SearchPath.own.place(of: command[0]) else {
            let isThere = command[0].contains("/") && Files.exists(command[0])
            throw Failed("\(command[0]) \(isThere ? "is no program" : "was not found").", status: isThere ? 126 : 127)
        }
        var relays = try ConfinedRelays(relay)
        wall.environment = relays.added(to: wall.environment)
        if explain {
            // Without a daemon the accounts are not known, and the rest is shown.
            try? relays.check(daemon)
            let limit = scope.map { ", for at most “\($0)”" } ?? ""
            let given = account.map { ["ask", "for tokens of \($0)\(limit)"] }
            let servers = try ConfinedServer.all(mcp, tool).map { ["use", "\($0.text), by \(shown: $0.command)"] }
            return try ConfinedCommand(wall: wall, network: network, place: place, command: command)
                .explain(given + servers + relays.rows)
        }
        if display { Output.note("note: with the display the command sees and types what you do: the wall is weaker.") }
        let sockets = try sockets(for: &wall)
        try relays.check(daemon)
        let confined = try ConfinedCommand(wall: wall, network: network, place: place, command: command)
        let status = try confined.run(relays, daemon)
        for socket in sockets { socket.end() }
        for path in wall.changes() {
            Output.note(
                "note: \(Sanitizer.line(path, limit: 1_000)) was made or changed. It may run outside: look at it.")
        }
        throw ExitCode(status)
    }

    /// Why nothing has run.
    struct Failed: Error {
        /// The wall could not be built.
        static let wall: Int32 = 125

        let status: Int32
        let text: String

        init(_ text: String, status: Int32 = Failed.wall) {
            self.text = text
            self.status = status
        }
    }

    /// The daemon's sockets for the command: one for its tokens, and one for each MCP server.
    private func sockets(for wall: inout Wall) throws -> [RunSocket] {
        var sockets: [RunSocket] = []
        func add(_ order: JSONObject, server: String? = nil) throws(RingbackError) {
            var order = order
            order["nested"] = nested ? true : nil
            let socket = try RunSocket(order, try daemon.calls())
            wall.addSocket(in: socket.directory, server: server)
            sockets.append(socket)
        }
        if !account.isEmpty {
            if scope == nil {
                let names = account.joined(separator: ", ")
                Output.note("note: without --scope the command gets the whole access token of \(names).")
            }
            try add(["accounts": account, "scope": scope])
        }
        for server in try ConfinedServer.all(mcp, tool) {
            try add(server.order, server: server.account)
            Output.note("note: inside is \(server.text). What an MCP client starts: \(shown: server.command)")
        }
        return sockets
    }

    private static func isPlain(_ letter: Character) -> Bool {
        letter.isASCII && (letter.isLetter || letter.isNumber || ".-_".contains(letter))
    }

    private func wall() throws -> Wall {
        let home = try Files.home()
        let data = Files.place("XDG_DATA_HOME") ?? "\(home)/.local/share"
        let file = try AccountFile(name: "", configuration: nil)
        // A command that could change one of these would choose what the next run gives it.
        let named = [
            file.configuration, file.directory, SocketPlace.variable("RINGBACK_STATE"),
            try? SocketPlace.path(stated: daemon.socket),
        ]
        let kept =
            named.compactMap { $0.flatMap(Path.absolute) } + [
                "\(Files.place("XDG_CONFIG_HOME") ?? "\(home)/.config")/ringback",
                "\(Files.place("XDG_STATE_HOME") ?? "\(home)/.local/state")/ringback", "\(data)/ringback",
                "\(Files.place("XDG_RUNTIME_DIR") ?? "/run/user/\(getuid())")/ringback",
            ]
        guard let present = Path.absolute(".") else { throw Failed("The present folder is gone.") }
        let folder = try WorkFolder(present, home: home, kept: kept)
        guard let program = Programs.own else { throw Failed("The path of ringback is not known.") }
        let name = try self.home ?? Run.homeName(for: folder.path)
        var wall = Wall(workFolder: folder, keptHome: "\(data)/ringback/homes/\(name)", home: home, program: program)
        wall.readable = try read.map { try WorkFolder($0, as: "The folder to read", home: home, kept: kept) }
        wall.writable = try write.map { try WorkFolder($0, as: "The folder to change", home: home, kept: kept) }
        try wall.checkLinks(on: (read + write).map { Path.absolute($0) ?? $0 })
        wall.isNested = nested
        let own = Programs.environment
        wall.environment = wall.environment(of: own, named: variables)
        if display { wall.addDisplay(of: own) }
        return wall
    }

    /// A home for each work folder: its path, in which slashes are written in another way.
    private static func homeName(for folder: String) throws -> String {
        // No name of --home has a percent sign.
        let name = folder.replacing("%", with: "%25").replacing("/", with: "%2F")
        guard name.utf8.count < 200 else { throw Failed("The path \(folder) is long. Choose --home NAME.") }
        return name
    }
}
