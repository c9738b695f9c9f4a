import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
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

struct VaultMove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Wait until what this host's vault has is in the database.",
        discussion: """
            Once store is set in [vault] and this host has joined, the daemon gives the database what its own vault had. \
            Killed at any point, nothing is lost: run it again. Ctrl-C ends the waiting, and changes nothing.
            """)

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            var shown: String?
            while true {
                let vault = try calls.call(.getStatus)["vault"]
                let (place, unsent, obstacle) = try VaultMove.standing(of: vault)
                if obstacle == nil, unsent == 0 {
                    guard !json.isWanted else { return Output.json(vault ?? .object(JSONObject([]))) }
                    return Output.line("Everything that this host's vault has is in \(place).")
                }
                let text = obstacle ?? "\(place) does not have \(unsent == 1 ? "1 change" : "\(unsent) changes") yet."
                if shown != text { Output.note("Waiting: \(text)") }
                shown = text
                if interruption.wait(atMost: .milliseconds(300)) {
                    throw RingbackError(.cancelled, "It is not known yet whether everything is in the database.")
                }
            }
        }
    }

    /// Where the database is, what it does not have, and why it gets nothing now.
    ///
    /// - Throws: `no_store` and `vault_locked` where waiting does not help.
    private static func standing(of vault: JSON?) throws(RingbackError) -> (String, Int, String?) {
        guard let database = vault?["database"], let place = database["place"]?.string else {
            var error = RingbackError("no_store", "The sessions of this daemon are on this host alone.")
            error.advice =
                "Put the lines into the configuration that ringback vault init or invite printed, start the daemon anew, "
                + "and run: ringback vault join"
            throw error
        }
        if vault?["locked"]?.bool == true {
            var error = RingbackError(.vaultLocked, vault?["reason"]?.string ?? "The vault is locked.")
            error.advice = "Run: ringback unlock; or, if this host has not joined: ringback vault join"
            throw error
        }
        let problem = database["reachable"]?.bool == true ? nil : database["problem"]?.string ?? "It cannot be used."
        return (
            Sanitizer.line(place, limit: 300), database["unsent"]?.integer ?? 0,
            problem.map { Sanitizer.line($0, limit: 300) }
        )
    }
}

struct VaultFacts: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the state of a database that hosts share.",
        discussion: """
            With URL, what its administrator can see; the password is read as for ringback vault init. Without, what the \
            daemon of this host knows. Exit status 1: something is wrong with it, and is said.
            """)

    @Argument(help: "The database, as its administrator reaches it, without a password.")
    var url: String?

    @OptionGroup var server: ServerOptions
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var warnings: [String] = []
        try present { () throws(RingbackError) in
            if let url { warnings = try showFacts(url) } else { warnings = try showDaemon() }
        }
        for warning in warnings { Output.note("Warning: \(warning)") }
        if !warnings.isEmpty { throw ExitCode(ExitStatus.failed) }
    }

    // MARK: The administrator's

    private func showFacts(_ url: String) throws(RingbackError) -> [String] {
        let report = try AdministratorCall.run(["facts", "--url", url] + server.words)
        guard !json.isWanted else {
            Output.json(report)
            return []
        }
        Output.field("Database", report["place"]?.string)
        Output.field("Server", report["server"]?.integer.map { "PostgreSQL \($0 / 10_000)" })
        Output.field("Schema", report["version"]?.integer.map { $0 == 0 ? "none" : "version \($0)" })
        for (label, member) in [("Owners", "owners"), ("Hosts", "hosts")] {
            Output.field(label, report[member]?.integer.map { "\($0)" })
        }
        Output.field("Size", report["size"]?.integer.map { "\(($0 + 1_023) / 1_024) KiB" })
        return VaultFacts.warnings(report)
    }

    static func warnings(_ report: JSON) -> [String] {
        var warnings: [String] = []
        let (version, wanted) = (report["version"]?.integer ?? 0, report["wanted_version"]?.integer ?? 0)
        if version == 0 {
            warnings.append("It has no schema of Ringback's. Run: ringback vault init URL --owner NAME")
        } else if version < wanted {
            warnings.append(
                "Its schema is of version \(version), and this program works with version \(wanted). Run: ringback vault "
                    + "migrate URL")
        } else if version > wanted {
            warnings.append(
                "Its schema is of version \(version), which is newer than this program. Install the version of Ringback "
                    + "that the other hosts have.")
        }
        if report["durable"] == false {
            warnings.append(
                "The server does not sync what it writes (fsync or full_page_writes is off): a crash of its machine may "
                    + "lose sessions.")
        }
        if report["synchronous_standby"] == false {
            warnings.append(
                "No standby is synchronous (synchronous_standby_names is empty): if the server's disk is lost, the last "
                    + "tokens are lost with it, but for what the hosts hold.")
        }
        if report["listens"] == false {
            warnings.append(
                "Notifications do not come through (a pooler in transaction mode is between): hosts look for changes every "
                    + "few seconds, and a sign-out elsewhere takes as long.")
        }
        return warnings
    }

    // MARK: The daemon's

    private func showDaemon() throws(RingbackError) -> [String] {
        let answer = try daemon.calls().call(.getStatus)
        let vault = answer["vault"] ?? .object(JSONObject([]))
        guard !json.isWanted else {
            Output.json(vault)
            return []
        }
        let locked = vault["locked"]?.bool == true
        Output.field("Vault", (vault["kind"]?.string ?? "") + (locked ? ", locked" : ""))
        if locked { Output.field("Locked", vault["reason"]?.string ?? "Run: ringback unlock") }
        guard let database = vault["database"] else {
            Output.field("Database", "none: the sessions are on this host alone")
            return []
        }
        Output.field("Database", database["place"]?.string)
        let unsent = database["unsent"]?.integer ?? 0
        Output.field("Unsent", unsent > 0 ? "\(unsent) \(unsent == 1 ? "change" : "changes") of this host" : nil)
        if database["notifications"]?.bool == false {
            Output.field("Changes", "looked for every few seconds: notifications do not come")
        }
        if database["synchronous_standby"]?.bool == false {
            Output.field("Standby", "none is synchronous: a lost disk loses the last changes")
        }
        guard database["reachable"]?.bool != true else { return [] }
        let problem = Sanitizer.line(database["problem"]?.string ?? "It cannot be used.", limit: 300)
        return ["\(problem) Tokens are served while they are valid, and nothing is refreshed."]
    }
}
