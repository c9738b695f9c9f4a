import ArgumentParser
import StrictJSON

struct SupabaseSQL: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sql", abstract: "Print the SQL of a profile table, for a project's own database.",
        discussion: """
            One row for each user in auth.users: table, triggers, functions to be called by RPC, and policies by \
            which users see only their own row. Needs no daemon. Run what it prints in the dashboard's SQL \
            editor, or hand it to psql; it can be run again.
            """)

    @Option(help: ArgumentHelp("The table, in the schema public.", valueName: "name"))
    var table = "profiles"

    @Flag(help: "With indexes, reactivation, soft deletion and an audit table of linked identities.")
    var full = false

    @OptionGroup var json: JSONOption

    func validate() throws {
        guard ProfileScript.isName(table) else {
            throw ValidationError(
                "The table's name has 1 to 63 of A-Z, a-z, 0-9 and _, and does not begin with a digit.")
        }
        guard !full || table != ProfileScript.auditTable else {
            throw ValidationError("\(ProfileScript.auditTable) is the audit table of --full: choose another name.")
        }
    }

    func run() {
        let script = ProfileScript(name: table, isFull: full).text
        guard json.isWanted else {
            // `Output.line` adds the last newline.
            return Output.line(String(script.dropLast()))
        }
        Output.json(
            .object(
                JSONObject([
                    .init("table", .string(table)), .init("full", .bool(full)), .init("sql", .string(script)),
                ])))
    }
}
