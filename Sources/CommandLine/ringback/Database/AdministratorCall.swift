import ArgumentParser
import RingbackClient
import StrictJSON
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
