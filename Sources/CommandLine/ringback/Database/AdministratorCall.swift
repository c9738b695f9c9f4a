import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

/// Who may answer as the database on this machine.
struct ServerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A further user who may run the server on this machine, beside root, postgres and you.", valueName: "uid"))
    var serverUID: UInt32?

    var words: [String] { serverUID.map { ["--server-uid", "\($0)"] } ?? [] }
}

/// What an administrator of the vault's database asks for is done by the daemon's program: this one has no client of
/// PostgreSQL.
enum AdministratorCall {
    /// A statement may wait for half a minute, and there are several of them.
    private static let bound = Duration.seconds(180)
    private static let longestPassword = 1_024

    /// Runs `ringbackd --database`. The password is asked for only if the database wants one and `.pgpass` has none.
    ///
    /// - Throws: `usage` for a URL that cannot be read; `database_failed` for everything else.
    static func run(_ words: [String]) throws(RingbackError) -> JSON {
        let command = [Programs.path("ringbackd"), "--database"] + words
        let first = try report(command, password: nil)
        guard first["problem"]?.string == "no_password" else { return try checked(first) }
        return try checked(try report(command, password: try password(for: first["place"]?.string ?? "the database")))
    }

    /// Says which version the schema has, and had.
    static func showVersions(_ report: JSON) {
        guard let version = report["version"]?.integer, let former = report["former_version"]?.integer else { return }
        let place = Sanitizer.line(report["place"]?.string ?? "", limit: 1_000)
        switch former {
        case version: Output.note("\(place): the schema is there already, in version \(version).")
        case 0: Output.note("\(place): the schema was made, in version \(version).")
        default: Output.note("\(place): the schema was brought from version \(former) to version \(version).")
        }
    }

    private static func report(_ command: [String], password: [UInt8]?) throws(RingbackError) -> JSON {
        let given = password == nil ? [] : ["--credential-fd", "password=0"]
        let (status, output) = try Programs.run(command + given, within: bound, input: password)
        guard let report = try? JSON(parsing: output), report["problem"] != nil || status == 0 else {
            throw RingbackError(
                .badResponse, "The call of the database by ringbackd ended with status \(status) and no report.")
        }
        return report
    }

    private static func checked(_ report: JSON) throws(RingbackError) -> JSON {
        guard let problem = report["problem"]?.string else { return report }
        throw DatabaseFailure.error(problem, report)
    }

    private static func password(for place: String) throws(RingbackError) -> [UInt8] {
        let line: String?
        if Console.Stream.input.isTerminal {
            line = Prompt.readHidden(
                "Password of \(Sanitizer.line(place, limit: 300)) (it is not shown): ", limit: longestPassword,
                interruption: try Signals.interruption().descriptor)
        } else {
            line = readLine(strippingNewline: true)
        }
        guard let line, !line.isEmpty else {
            throw RingbackError(
                .cancelled,
                "\(Sanitizer.line(place, limit: 300)) asks for a password, and none was read. It is asked for on a "
                    + "terminal; else it is the first line of standard input, or a line of .pgpass.")
        }
        guard line.utf8.count <= longestPassword else {
            throw RingbackError(.cancelled, "The password is longer than \(longestPassword) bytes.")
        }
        return Array(line.utf8)
    }
}

/// What `ringbackd --database` did not do, as a sentence with the next step.
enum DatabaseFailure {
    private static let kind: RingbackError.Kind = "database_failed"

    static func error(_ problem: String, _ report: JSON) -> RingbackError {
        if problem == "url" { return RingbackError(ExitStatus.usageKind, urlMistake(report)) }
        let place = Sanitizer.line(report["place"]?.string ?? "the database", limit: 300)
        let (what, step) = words(problem, report)
        var error = RingbackError(kind, "\(place): \(what)")
        error.advice = step
        return error
    }

    private static func words(_ problem: String, _ report: JSON) -> (what: String, step: String?) {
        switch problem {
        case "no_library":
            ("the library libpq, version 14 or later, is not installed.", "Install it: Debian's package is libpq5.")
        case "no_password": ("it asks for a password, and none was given.", nil)
        case "no_connection":
            ("no connection can be made.", "See that the server runs and listens there, and that a firewall lets you.")
        case "tls":
            (
                "it has no TLS, or its certificate is not valid for its name.",
                "Name its authority in the URL: ?sslrootcert=/PATH. TLS is left out on this machine only."
            )
        case "authentication":
            (
                "it does not let this role in.",
                "See the role's name, its password or its line in .pgpass, and pg_hba.conf of the server."
            )
        case "foreign_server":
            (
                report["uid"]?.integer.map {
                    "the process that answers there belongs to the user with the uid \($0), and not to root or the database."
                } ?? "the owner of the process that answers there cannot be determined.",
                "If that is right, repeat the command with --server-uid UID, or use TLS with ?sslmode=verify-full."
            )
        case "weak_authentication":
            (
                "it asks for the password in clear or by MD5.",
                "Set scram-sha-256 in the server's pg_hba.conf, or use TLS with ?sslmode=verify-full."
            )
        case "too_much": ("it sent more data than is accepted.", nil)
        case "timed_out": ("it did not answer in time.", "Try again; the same command goes on where this one ended.")
        case "closed": ("the connection ended.", "Try again; the same command goes on where this one ended.")
        case "read_only": ("no server there takes changes.", "Name the primary server, or all of them: HOST1,HOST2.")
        case "not_now", "busy":
            ("it starts or ends at the moment, or has no connection left.", "Try again in a minute.")
        case "no_schema": ("it has no schema of Ringback's.", "Run: ringback vault init URL --owner NAME")
        case "other_schema":
            (
                "its schema is of version \(report["version"]?.integer ?? 0), which is newer than this program.",
                "Install the version of Ringback that the other hosts have."
            )
        case "not_permitted":
            (
                "this role may not do that.",
                "Use a superuser, or a role that may create roles and a schema in that database."
            )
        case "no_room": ("its disk is full.", nil)
        case "too_many_hosts":
            ("this owner has as many hosts as an owner may have.", "On a host, run: ringback vault remove-host NAME")
        case "refused": refusal(report["state"]?.string ?? "")
        default: ("it did not do what was asked (\(Sanitizer.line(problem, limit: 60))).", nil)
        }
    }

    /// By SQLSTATE: those that the schema's own script raises have a sentence.
    private static func refusal(_ state: String) -> (what: String, step: String?) {
        switch state {
        case "0A000": ("PostgreSQL 14 or later is needed.", nil)
        case "42710":
            (
                "there is a role ringback_owner or ringback_hosts with rights that it must not have.",
                "If it is not Ringback's, use another server; else take LOGIN, SUPERUSER, BYPASSRLS and REPLICATION "
                    + "from it."
            )
        case "42P06": ("its schema ringback belongs to another role.", "Use another database of that server.")
        default: ("it refused a statement, with SQLSTATE \(Sanitizer.line(state, limit: 10)).", nil)
        }
    }

    private static func urlMistake(_ report: JSON) -> String {
        let name = report["option"]?.string == "host_url" ? "The URL of --host-url" : "The URL"
        let part = Sanitizer.line(report["part"]?.string ?? "", limit: 100)
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
