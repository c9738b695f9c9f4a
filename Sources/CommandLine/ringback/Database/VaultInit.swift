import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct VaultInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Prepare a database for a vault that hosts share, and admit a first host.",
        discussion: """
            URL is an administrator's, such as postgresql://postgres@db.example.org/ringback. If the database asks for a \
            password, it is read from .pgpass, else from the terminal or the first line of standard input. What is there \
            already stays as it is. Needs no daemon.
            """)

    @Argument(help: "The database, as its administrator reaches it, without a password.")
    var url: String

    @Option(help: "Whose hosts they are: a name of 1 to 64 bytes. Owners cannot see each other's rows.")
    var owner: String

    @Option(help: ArgumentHelp("The database, as the hosts reach it, if that differs.", valueName: "url"))
    var hostURL: String?

    @OptionGroup var server: ServerOptions
    @OptionGroup var json: JSONOption

    func run() throws {
        try present { () throws(RingbackError) in
            guard (1...64).contains(owner.utf8.count), owner.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else {
                throw RingbackError(ExitStatus.usageKind, "--owner needs a name of 1 to 64 bytes.")
            }
            var words = ["init", "--url", url, "--owner", owner] + server.words
            if let hostURL { words += ["--host-url", hostURL] }
            let report = try AdministratorCall.run(words)
            guard !json.isWanted else { return Output.json(report) }
            AdministratorCall.showVersions(report)
            Output.line("For the configuration of \(text(report, "owner"))'s first host:")
            Output.line("")
            Output.line("[vault]")
            Output.line("store = \"\(text(report, "store"))\"")
            Output.line("")
            let span = TimeText.span(report["lasting"]?.integer ?? 0)
            Output.line("The invitation's password, for \(span): \(text(report, "password"))")
            Output.note(
                "It is not shown again. When the daemon of that host was started anew, run there: ringback vault join")
            if report["is_local"] == true {
                Output.note(
                    "The line is good on this machine only. For another one, name the database as it is reached from "
                        + "there, with --host-url.")
            }
        }
    }

    private func text(_ report: JSON, _ member: String) -> String {
        Sanitizer.line(report[member]?.string ?? "", limit: 4_000)
    }
}

struct VaultMigrate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Bring the schema of a vault's database to the version of this program.",
        discussion: """
            Hosts of another version cannot use the database from then on, and serve what they hold until they are \
            brought to this version too. The password is read as for ringback vault init.
            """)

    @Argument(help: "The database, as its administrator reaches it, without a password.")
    var url: String

    @OptionGroup var server: ServerOptions
    @OptionGroup var json: JSONOption

    func run() throws {
        try present { () throws(RingbackError) in
            let report = try AdministratorCall.run(["migrate", "--url", url] + server.words)
            guard !json.isWanted else { return Output.json(report) }
            AdministratorCall.showVersions(report)
        }
    }
}
