import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Runs the daemon's own check of the configuration as a program: there is one reader of TOML, and no daemon has to
/// run.
enum ConfigurationCheck {
    /// The report (`valid`, `accounts`, `errors`).
    ///
    /// - Parameter candidate: read as if it were in accounts.d already.
    /// - Throws: `invalid_configuration` with the mistakes, or why the check cannot be run.
    static func run(config: String?, candidate: AccountFile?) throws(RingbackError) -> JSON {
        guard let candidate else {
            return try run(config, [], onMistakes: "The configuration has mistakes; nothing is added to it.")
        }
        return try run(
            config, ["--candidate", candidate.candidate.path],
            onMistakes: "The account would not work; nothing is written.", candidate)
    }

    /// The same, with a draft in the place of one file: of the configuration file, or of a drop-in.
    static func run(config: String?, replacing original: String, with draft: String) throws(RingbackError) -> JSON {
        try run(
            config, ["--draft", draft, "--draft-of", original],
            onMistakes: "The configuration would have mistakes; nothing was changed.")
    }

    private static func run(
        _ config: String?, _ arguments: [String], onMistakes detail: String, _ candidate: AccountFile? = nil
    ) throws(RingbackError) -> JSON {
        let report = try report(config, arguments)
        guard report["valid"] == true else {
            throw RingbackError(
                Problem(
                    .invalidConfiguration, detail,
                    // Files on disk have no mistake if a candidate or a draft was checked.
                    extensions: JSONObject([
                        .init("errors", described(report["errors"], candidate)),
                        .init("draft", .bool(!arguments.isEmpty)),
                    ])))
        }
        return report
    }

    /// The report as it is, also of a configuration with mistakes.
    static func report(_ config: String?, _ arguments: [String] = []) throws(RingbackError) -> JSON {
        let place = config.map { ["--config", $0] } ?? []
        let (status, output) = try Programs.run(
            [Programs.path("ringbackd"), "--check-config", "--json"] + place + arguments)
        // The largest configuration that is allowed has about 15,000 accounts.
        guard let report = try? JSON(parsing: output, maxValues: 1_000_000) else {
            throw RingbackError(
                .badResponse, "The check of the configuration ended with status \(status) and no report.")
        }
        return report
    }

    /// What to type before the first sign-in of an account of the report; nil if nothing is needed.
    static func step(for account: JSON) -> String? {
        guard let uri = account["redirect_uri"]?.string, account["provider"]?.string != "supabase" || !uri.isEmpty,
            let scheme = uri.firstIndex(of: ":").map({ uri[..<$0].lowercased() })
        else { return nil }
        return switch scheme {
        case "http": nil
        case "https": "To give the address, run: ringback complete"
        default: "Run: \(shown: "ringback scheme register \(scheme)")"
        }
    }

    /// What to register at the provider for an account of the report.
    static func redirectURIs(of account: JSON) -> [String] {
        let listed = account["redirect_uris"]?.array?.compactMap(\.string)
        return (listed ?? [account["redirect_uri"]?.string].compactMap { $0 }).filter { !$0.isEmpty }
    }

    /// An account's entry of the report.
    static func account(_ name: String, in report: JSON) -> JSON? {
        report["accounts"]?.array?.first { $0["name"]?.string == name }
    }

    /// The mistakes. Those of the candidate, which is removed, have the option of `account add` that sets the key in the
    /// place of file and line (`place`).
    private static func described(_ errors: JSON?, _ candidate: AccountFile?) -> JSON {
        .array(
            (errors?.array ?? []).map { entry in
                guard let candidate, var object = entry.object,
                    object["file"]?.string == candidate.candidate.path
                else { return entry }
                let key = object["key"]?.string ?? ""
                object.members.removeAll { ["file", "line"].contains($0.name) }
                object["place"] = .string(option(for: key, of: candidate.name) ?? key)
                return .object(object)
            })
    }

    /// The option for `accounts.NAME.KEY`.
    private static func option(for key: String, of name: String) -> String? {
        let tables = [name, AccountText.quoted(name)].map { "accounts.\($0)." }
        guard let table = tables.first(where: { key.hasPrefix($0) }) else { return nil }
        return AccountDescription.option(for: String(key.dropFirst(table.count)))
    }
}
