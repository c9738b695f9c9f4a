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

            The exit status is the command's; 125: the wall could not be built, and nothing has run; 126: the command \
            cannot be started; 127: it was not found.
            """)

    enum Network: String, CaseIterable, ExpressibleByArgument { case internet, intranet, none }

    @Option(
        help: ArgumentHelp(
            "internet; intranet: private networks too; none.", valueName: "network"))
    var network: Network = .internet

    @Option(
        help: ArgumentHelp("An account whose access token it may have; may be repeated.", valueName: "name"),
        completion: Completions.accounts)
    var account: [String] = []

    @Option(help: ArgumentHelp("The scopes that a token may have at most, space-separated.", valueName: "scopes"))
    var scope: String?

    @Option(
        help: ArgumentHelp(
            "An address in a variable: what is sent there reaches the URL with the credentials of its origin.",
            valueName: "var=url"))
    var relay: [String] = []

    @Option(help: ArgumentHelp("A folder to read.", valueName: "dir"), completion: .directory)
    var read: [String] = []

    @Option(help: ArgumentHelp("A folder to change.", valueName: "dir"), completion: .directory)
    var write: [String] = []

    @Option(help: ArgumentHelp("The home directory, by a name of your own.", valueName: "name"))
    var home: String?

    @Option(name: .customLong("env"), help: ArgumentHelp("A variable to pass on.", valueName: "name"))
    var variables: [String] = []

    @Flag(help: "Let the command make sandboxes of its own. It reaches more of the kernel then.")
    var nested = false

    @Flag(help: "Give it the display. By that it can see and type what you do.")
    var display = false

    @Flag(help: "Show what the command would see, and run nothing.")
    var explain = false

    @OptionGroup var daemon: DaemonOptions

    @Argument(
        parsing: .postTerminator, help: ArgumentHelp("After --: the command.", valueName: "cmd"),
        completion: Completions.command)
    var command: [String] = []

    func validate() throws {
        try require(scope == nil || !account.isEmpty, "--scope is for the accounts of --account.")
        try require(command.first?.isEmpty == false, "Name the command after --: \(shown: "ringback run -- CMD").")
        try require(
            home.map { $0.utf8.count <= 64 && !$0.hasPrefix(".") && $0.allSatisfy(Run.isPlain) } ?? true,
            "A home's name has letters, digits, \".\", \"-\" and \"_\" only.")
        try require(variables.allSatisfy(ExecToken.isVariable), "--env must be a variable's name.")
    }

    func run() throws {
        do {
            var wall = try wall()
            guard let place = SearchPath.own.place(of: command[0]) else {
                let isThere = command[0].contains("/") && Files.exists(command[0])
                throw Failed(
                    "\(command[0]) \(isThere ? "is no program" : "was not found").", status: isThere ? 126 : 127)
            }
            let relays = try ConfinedRelays(relay)
            wall.environment = relays.added(to: wall.environment)
            if explain {
                return try ConfinedCommand(wall: wall, network: network, place: place, command: command)
                    .explain(accounts: account, scope: scope, relays)
            }
            let exposed = try exposed()
            if let exposed { wall.addSocket(in: exposed.directory) }
            try relays.check(daemon)
            let confined = try ConfinedCommand(wall: wall, network: network, place: place, command: command)
            let status = try withExtendedLifetime(exposed) { try confined.run(relays, daemon) }
            for path in wall.changes() {
                Output.note(
                    "note: \(Sanitizer.line(path, limit: 1_000)) was made or changed. It may run outside: look at it.")
            }
            throw ExitCode(status)
        } catch let failure as Failed {
            Output.note("ringback: \(failure.text)")
            throw ExitCode(failure.status)
        } catch let failure as Wall.Failure {
            Output.note("ringback: \(failure.text)")
            throw ExitCode(Failed.wall)
        } catch let error as RingbackError {
            Output.note("ringback: " + [error.detail, error.advice].compactMap { $0 }.joined(separator: " "))
            throw ExitCode(Failed.wall)
        }
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

    /// A restricted socket that the daemon closes when this process ends, however it does.
    private func exposed() throws(RingbackError) -> (directory: String, connection: SocketConnection)? {
        guard !account.isEmpty else { return nil }
        if scope == nil {
            Output.note(
                "note: without --scope the command gets the whole access token of \(account.joined(separator: ", ")).")
        }
        let (socket, connection) = try daemon.calls().exposeWhileConnected([
            "name": "run-\(getpid())-\(UInt32.random(in: 0 ... .max))", "accounts": account, "scope": scope,
        ])
        guard let directory = socket["directory"]?.string else {
            throw RingbackError(.badResponse, "The daemon's response names no directory of the restricted socket.")
        }
        return (directory, connection)
    }

    private static func isPlain(_ letter: Character) -> Bool {
        letter.isASCII && (letter.isLetter || letter.isNumber || ".-_".contains(letter))
    }

    private func wall() throws -> Wall {
        let home = try Files.home()
        let data = Files.place("XDG_DATA_HOME") ?? "\(home)/.local/share"
        let kept = [
            "\(Files.place("XDG_CONFIG_HOME") ?? "\(home)/.config")/ringback",
            "\(Files.place("XDG_STATE_HOME") ?? "\(home)/.local/state")/ringback", "\(data)/ringback",
            "\(Files.place("XDG_RUNTIME_DIR") ?? "/run/user/\(getuid())")/ringback",
        ]
        guard let present = Path.absolute(".") else { throw Failed("The present folder is gone.") }
        let folder = try WorkFolder(present, home: home, kept: kept)
        guard let program = Programs.own else { throw Failed("The path of ringback is not known.") }
        let name = try self.home ?? Run.homeName(for: folder.path)
        var wall = Wall(workFolder: folder, keptHome: "\(data)/ringback/homes/\(name)", home: home, program: program)
        wall.readable = try read.map { try WorkFolder($0, as: "The folder of --read", home: home, kept: kept) }
        wall.writable = try write.map { try WorkFolder($0, as: "The folder of --write", home: home, kept: kept) }
        wall.isNested = nested
        let own = Run.ownEnvironment()
        wall.environment = wall.environment(of: own, named: variables)
        if display { wall.addDisplay(of: own) }
        return wall
    }

    /// A home for each work folder: its path, in which slashes are written in another way.
    private static func homeName(for folder: String) throws -> String {
        let name = folder.dropFirst().replacing("%", with: "%25").replacing("/", with: "%2F")
        guard name.utf8.count < 200 else { throw Failed("The path \(folder) is long. Choose --home NAME.") }
        return String(name)
    }

    private static func ownEnvironment() -> [String: String] {
        var all: [String: String] = [:]
        var next = unsafe environ
        while let entry = unsafe next.pointee {
            let text = unsafe String(cString: entry)
            if let mark = text.firstIndex(of: "=") {
                all[String(text[..<mark])] = String(text[text.index(after: mark)...])
            }
            unsafe next += 1
        }
        return all
    }
}
