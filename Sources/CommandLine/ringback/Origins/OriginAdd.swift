import ArgumentParser
import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct OriginAdd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Let tools have an account's token for a server.",
        discussion: """
            Adds an [[origin]] table to the end of the configuration file, and lets a running daemon read it. Nothing is \
            written if the daemon's own check finds a mistake.
            """)

    @Argument(help: "Where the token may be sent: https://HOST/*, or https://HOST/PATH/* for a part of it.")
    var url: String

    @Option(help: "The account whose token it is.", completion: Completions.accounts)
    var account: String

    @Option(help: "Only for tools that say this user name.")
    var matchUsername: String?

    @Option(help: "A token downscoped to these scopes, space-separated.")
    var scope: String?

    @Option(help: "A token for this audience.")
    var audience: String?

    @Option(help: "A token for this resource (RFC 8707).")
    var resource: String?

    @Option(help: "access_token (the default) or id_token.")
    var kind: TokenKind?

    @Option(help: "The user name for tools that want one.")
    var username: String?

    @Option(help: ArgumentHelp("A field to send: “Name: value” with {token}. May be repeated.", valueName: "field"))
    var header: [String] = []

    @Flag(help: "Also for tools that do not say whether they use https, such as pnpm.")
    var withoutScheme = false

    @Option(
        help: ArgumentHelp(
            "For kubectl: the SHA-256 of the cluster's certificate authority. May be repeated.", valueName: "digest"))
    var caSha256: [String] = []

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let rule = OriginRule(try OriginEntry.pattern(url), username: matchUsername)
            let file = try config.file()
            if let known = OriginEntry.all(in: try file.report()).first(where: { $0.rule == rule }) {
                throw taken(known)
            }
            let added = try file.addOrigin(rule, table(rule))
            if let added { show(added, in: file) }
            try daemon.calls().reloadIfRunning()
        }
    }

    private func taken(_ known: OriginEntry) -> RingbackError {
        let user = known.rule.username.map { " with --match-username \($0)" } ?? ""
        let option: ShownCommand = known.rule.username.map { "--match-username=\($0)" } ?? ""
        var error = RingbackError(
            .invalidConfiguration, "\(known.rule.pattern.text)\(user) is there already: \(known.source.text).")
        // Without the asterisk, which a shell would take for a pattern.
        let url = String(known.rule.pattern.text.dropLast("/*".count))
        error.advice = "To change it, remove it first. Run: \(shown: "ringback origin remove \(url) \(option)")"
        return error
    }

    private func table(_ rule: OriginRule) -> [String] {
        let pairs: [(String, String?)] = [
            ("url", rule.pattern.text), ("account", account), ("match_username", matchUsername), ("scope", scope),
            ("audience", audience), ("resource", resource), ("kind", kind?.rawValue), ("username", username),
        ]
        return OriginEntry.table(pairs, headers: header)
            + (withoutScheme ? ["without_scheme = true"] : [])
            + (caSha256.isEmpty ? [] : ["ca_sha256 = [\(caSha256.map(AccountText.quoted).joined(separator: ", "))]"])
    }

    private func show(_ entry: OriginEntry, in file: ConfigurationFile) {
        guard !json.isWanted else { return Output.json(entry.json) }
        let user = entry.rule.username.map { " that say the user name \($0)" } ?? ""
        Output.line("Added to \(Sanitizer.line(file.path, limit: 600)): \(entry.rule.pattern.text)")
        Output.note("Tools\(user) get \(entry.given) there.")
    }
}

extension OriginEntry {
    /// The text of an origin's table.
    static func table(_ pairs: [(String, String?)], headers: [String] = []) -> [String] {
        var lines = [header]
        for case (let key, let value?) in pairs { lines.append("\(key) = \(AccountText.quoted(value))") }
        switch headers.count {
        case 0: break
        case 1: lines.append("header = \(AccountText.quoted(headers[0]))")
        default: lines.append("header = [\(headers.map(AccountText.quoted).joined(separator: ", "))]")
        }
        return lines
    }
}

extension ConfigurationFile {
    /// Adds an origin's table to the end of the file.
    ///
    /// - Returns: the origin as the daemon's check reads it.
    func addOrigin(_ rule: OriginRule, _ table: [String]) throws(RingbackError) -> OriginEntry? {
        let former = OriginEntry.all(in: try report()).count
        var lines = ConfigurationLines(try text() ?? [])
        lines.append(table: table)
        var added: OriginEntry?
        try replace(with: lines.text) { report in
            let entries = OriginEntry.all(in: report)
            added = entries.first { $0.rule == rule }
            return entries.count == former + 1 && added != nil
        }
        return added
    }
}
