import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

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
