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

    @Argument(help: "The database, as its administrator reaches it, without a password.") var url: String

    @Option(help: "Whose hosts they are: a name of 1 to 64 bytes. Owners cannot see each other's rows.")
    var owner: String

    @Option(help: .value("url", "The database, as the hosts reach it, if that differs.")) var hostURL: String?
    @OptionGroup var server: ServerOptions
    @OptionGroup var json: JSONOption

    func run() throws {
        guard (1...64).contains(owner.utf8.count), owner.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else {
            throw RingbackError(ExitStatus.usageKind, "--owner needs a name of 1 to 64 bytes.")
        }
        var words = ["init", "--url", url, "--owner", owner] + server.words
        if let hostURL { words += ["--host-url", hostURL] }
        let report = try AdministratorCall.run(words)
        guard !json.isWanted else { return Output.json(report) }
        AdministratorCall.showVersions(report)
        let host = "\(report.shown("owner"))'s first host"
        VaultInvite.show(report, to: host, lasting: report["lasting"]?.integer ?? 0)
        if report["is_local"] == true {
            Output.note(
                "The line is good on this machine only. For another one, name the database as it is reached from "
                    + "there, with --host-url.")
        }
    }
}

struct VaultMigrate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Bring the schema of a vault's database to the version of this program.",
        discussion: """
            Hosts of another version cannot use the database from then on, and serve what they hold until they are \
            brought to this version too. The password is read as for ringback vault init.
            """)

    @Argument(help: "The database, as its administrator reaches it, without a password.") var url: String
    @OptionGroup var server: ServerOptions
    @OptionGroup var json: JSONOption

    func run() throws {
        let report = try AdministratorCall.run(["migrate", "--url", url] + server.words)
        guard !json.isWanted else { return Output.json(report) }
        AdministratorCall.showVersions(report)
    }
}

struct VaultMove: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Wait until what this host's vault has is in the database.",
        discussion: """
            Once store is set in [vault] and this host has joined, the daemon gives the database what its own vault had. \
            Killed at any point, nothing is lost: run it again. Ctrl-C ends the waiting, and changes nothing.
            """)

    @OptionGroup var options: CallOptions

    func run() throws {
        let interruption = try Signals.interruption()
        let calls = try daemon.interruptibleCalls()
        var shown: String?
        while true {
            let vault = try calls.call(.getStatus)["vault"]
            let (place, unsent, obstacle) = try VaultMove.standing(of: vault)
            if obstacle == nil, unsent == 0 {
                guard !json.isWanted else { return Output.json(vault ?? [:]) }
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

    private static func standing(of vault: JSON?) throws(RingbackError) -> (String, Int, String?) {
        guard let database = vault?["database"], let place = database["place"]?.string else {
            throw RingbackError(
                "no_store", "The sessions of this daemon are on this host alone.",
                advice:
                    "Put the lines into the configuration that ringback vault init or invite printed, start the daemon anew, "
                    + "and run: ringback vault join")
        }
        if vault?["locked"]?.bool == true {
            throw RingbackError(
                .vaultLocked, vault?["reason"]?.string ?? "The vault is locked.",
                advice: "Run: ringback unlock; or, if this host has not joined: ringback vault join")
        }
        let problem = database.isTrue("reachable") ? nil : database["problem"]?.string ?? "It cannot be used."
        return (
            Sanitizer.line(place, limit: 300), database["unsent"]?.integer ?? 0,
            problem.map { Sanitizer.line($0, limit: 300) }
        )
    }
}

struct VaultFacts: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the state of a database that hosts share.",
        discussion: """
            With URL, what its administrator can see; the password is read as for ringback vault init. Without, what the \
            daemon of this host knows. Exit status 1: something is wrong with it, and is said.
            """)

    @Argument(help: "The database, as its administrator reaches it, without a password.") var url: String?
    @OptionGroup var server: ServerOptions
    @OptionGroup var options: CallOptions

    func run() throws {
        let answer =
            if let url {
                try AdministratorCall.run(["facts", "--url", url] + server.words)
            } else {
                try daemon.calls().call(.getStatus)["vault"] ?? [:]
            }
        guard !json.isWanted else { return Output.json(answer) }
        let warnings = url == nil ? VaultFacts.showDaemon(answer) : VaultFacts.showFacts(answer)
        for warning in warnings { Output.note("Warning: \(warning)") }
        if !warnings.isEmpty { throw ExitCode(ExitStatus.failed) }
    }

    private static func showFacts(_ report: JSON) -> [String] {
        Output.fields([
            "Database": report["place"]?.string,
            "Server": report["server"]?.integer.map { "PostgreSQL \($0 / 10_000)" },
            "Schema": report["version"]?.integer.map { $0 == 0 ? "none" : "version \($0)" },
            "Owners": report["owners"]?.integer.map { "\($0)" }, "Hosts": report["hosts"]?.integer.map { "\($0)" },
            "Size": report["size"]?.integer.map { "\(($0 + 1_023) / 1_024) KiB" },
        ])
        return warnings(report)
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

    private static func showDaemon(_ vault: JSON) -> [String] {
        let locked = vault.isTrue("locked")
        Output.field("Vault", vault.text("kind") + (locked ? ", locked" : ""))
        if locked { Output.field("Locked", vault["reason"]?.string ?? "Run: ringback unlock") }
        guard let database = vault["database"] else {
            Output.field("Database", "none: the sessions are on this host alone")
            return []
        }
        let unsent = database["unsent"]?.integer ?? 0
        Output.fields([
            "Database": database["place"]?.string,
            "Unsent": unsent > 0 ? "\(unsent) \(unsent == 1 ? "change" : "changes") of this host" : nil,
            "Changes": database["notifications"]?.bool == false
                ? "looked for every few seconds: notifications do not come" : nil,
            "Standby": database["synchronous_standby"]?.bool == false
                ? "none is synchronous: a lost disk loses the last changes" : nil,
        ])
        guard database["reachable"]?.bool != true else { return [] }
        let problem = Sanitizer.line(database["problem"]?.string ?? "It cannot be used.", limit: 300)
        return ["\(problem) Tokens are served while they are valid, and nothing is refreshed."]
    }
}

/// Who may answer as the database on this machine.
struct ServerOptions: ParsableArguments {
    @Option(
        help: .value("uid", "A further user who may run the server on this machine, beside root, postgres and you."))
    var serverUID: UInt32?

    var words: [String] { serverUID.map { ["--server-uid", "\($0)"] } ?? [] }
}

/// Run by the daemon's program: this one has no client of PostgreSQL.
enum AdministratorCall {
    /// A statement may wait for half a minute, and there are several of them.
    private static let bound = Duration.seconds(180)

    /// The password is asked for only if the database wants one and `.pgpass` has none.
    static func run(_ words: [String]) throws(RingbackError) -> JSON {
        let command = [Programs.path("ringbackd"), "--database"] + words
        var report = try report(command, password: nil)
        if report["problem"]?.string == "no_password" {
            let password = try password(for: report["place"]?.string ?? "the database")
            report = try self.report(command, password: password)
        }
        guard let problem = report["problem"]?.string else { return report }
        throw DatabaseFailure.error(problem, report)
    }

    static func showVersions(_ report: JSON) {
        guard let version = report["version"]?.integer, let former = report["former_version"]?.integer else { return }
        let place = Sanitizer.line(report.text("place"), limit: 1_000)
        switch former {
        case version: Output.note("\(place): the schema is there already, in version \(version).")
        case 0: Output.note("\(place): the schema was made, in version \(version).")
        default: Output.note("\(place): the schema was brought from version \(former) to version \(version).")
        }
    }

    private static func report(_ command: [String], password: [UInt8]?) throws(RingbackError) -> JSON {
        let given = password == nil ? [] : ["--credential-fd", "password=0"]
        let answer = try Programs.run(command + given, within: bound, input: password)
        guard let report = try? JSON(parsing: answer.output), report["problem"] != nil || answer.status == 0 else {
            throw RingbackError(
                .badResponse, "The call of the database by ringbackd ended with status \(answer.status) and no report.")
        }
        return report
    }

    private static func password(for place: String) throws(RingbackError) -> [UInt8] {
        let shown = Sanitizer.line(place, limit: 300)
        let missing =
            "\(shown) asks for a password, and none was read. It is asked for on a terminal; else it is the first line of "
            + "standard input, or a line of .pgpass."
        return Array(try Passphrase.line("Password of \(shown) (it is not shown): ", "password", missing: missing).utf8)
    }
}

/// What `ringbackd --database` did not do, and the next step.
enum DatabaseFailure {
    static func error(_ problem: String, _ report: JSON) -> RingbackError {
        if problem == "url" { return RingbackError(ExitStatus.usageKind, urlMistake(report)) }
        let place = Sanitizer.line(report["place"]?.string ?? "the database", limit: 300)
        return RingbackError("database_failed", "\(place): \(text(problem, report))")
    }

    private static let again = "Try again; the same command goes on where this one ended."
    private static let tlsHint = "or use TLS with ?sslmode=verify-full."

    private static func text(_ problem: String, _ report: JSON) -> String {
        switch problem {
        case "no_library":
            "the library libpq, version 14 or later, is not installed. Install it: Debian's package is libpq5."
        case "no_password": "it asks for a password, and none was given."
        case "no_connection":
            "no connection can be made. See that the server runs and listens there, and that a firewall lets you."
        case "tls":
            "it has no TLS, or its certificate is not valid for its name. Name its authority in the URL: "
                + "?sslrootcert=/PATH. TLS is left out on this machine only."
        case "authentication":
            "it does not let this role in. See the role's name, its password or its line in .pgpass, and pg_hba.conf of "
                + "the server."
        case "weak_authentication":
            "it asks for the password in clear or by MD5. Set scram-sha-256 in the server's pg_hba.conf, \(tlsHint)"
        case "too_much": "it sent more data than is accepted."
        case "timed_out": "it did not answer in time. \(again)"
        case "closed": "the connection ended. \(again)"
        case "read_only": "no server there takes changes. Name the primary server, or all of them: HOST1,HOST2."
        case "not_now", "busy": "it starts or ends at the moment, or has no connection left. Try again in a minute."
        case "no_schema": "it has no schema of Ringback's. Run: ringback vault init URL --owner NAME"
        case "not_permitted":
            "this role may not do that. Use a superuser, or a role that may create roles and a schema in that database."
        case "no_room": "its disk is full."
        case "too_many_hosts":
            "this owner has as many hosts as an owner may have. On a host, run: ringback vault remove-host NAME"
        case "foreign_server":
            (report["uid"]?.integer.map {
                "the process that answers there belongs to the user with the uid \($0), and not to root or the database."
            } ?? "the owner of the process that answers there cannot be determined.")
                + " If that is right, repeat the command with --server-uid UID, \(tlsHint)"
        case "other_schema":
            "its schema is of version \(report["version"]?.integer ?? 0), which is newer than this program. Install the "
                + "version of Ringback that the other hosts have."
        case "refused": refusal(report.text("state"))
        default: "it did not do what was asked (\(Sanitizer.line(problem, limit: 60)))."
        }
    }

    /// By SQLSTATE: those that the schema's own script raises have a sentence.
    private static func refusal(_ state: String) -> String {
        switch state {
        case "0A000": "PostgreSQL 14 or later is needed."
        case "42710":
            "there is a role ringback_owner or ringback_hosts with rights that it must not have. If it is not Ringback's, "
                + "use another server; else take LOGIN, SUPERUSER, BYPASSRLS and REPLICATION from it."
        case "42P06": "its schema ringback belongs to another role. Use another database of that server."
        default: "it refused a statement, with SQLSTATE \(Sanitizer.line(state, limit: 10))."
        }
    }

    private static func urlMistake(_ report: JSON) -> String {
        let name = report["option"]?.string == "host_url" ? "The URL of --host-url" : "The URL"
        let part = Sanitizer.line(report.text("part"), limit: 100)
        return switch report["mistake"]?.string {
        case "scheme": "\(name) must begin with postgresql://"
        case "no_role": "\(name) must name a role: postgresql://ROLE@HOST/DATABASE"
        case "password":
            "\(name) must not have a password, since other users can read a program's arguments. Leave it out: it is "
                + "read from .pgpass, else from the terminal or the first line of standard input."
        case "host": "\(name) must name a host, an address or the directory of a socket (%2Frun%2Fpostgresql)."
        case "port": "\(name) has a port that is not a number from 1 to 65535."
        case "unknown_parameter": "\(name) has the parameter \(part), which is not known."
        case "repeated_parameter": "\(name) has the parameter \(part) twice."
        case "value": "\(name) has a value of \(part) that cannot be used."
        case "weak_tls": "\(name) must have no sslmode, or verify-full: only on this machine may it be another one."
        default: "\(name) cannot be read: postgresql://ROLE@HOST/DATABASE"
        }
    }
}
