import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct OriginVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origin", abstract: "Say which account's token tools get for which server.",
        subcommands: [OriginAdd.self, OriginList.self, OriginRemove.self, OriginTest.self])
}

struct ConfigurationOption: ParsableArguments {
    @Option(name: .customLong("config"), help: .value("path", "The configuration file, if not the usual one."))
    var path: String?

    var words: [String] { path.map { ["--config", $0] } ?? [] }

    func file() throws(RingbackError) -> ConfigurationFile { try ConfigurationFile(stated: path) }
}

struct OriginEntry {
    static let header = "[[origin]]"

    let rule: OriginRule
    let account: String
    let kind: TokenKind
    let source: AccountSource
    let json: JSON

    var scope: String? { json["scope"]?.string }
    var headers: [String] { json.texts("headers") }
    /// The SHA-256 of the certificate authorities that are allowed beside the system's.
    var authorities: Set<String> { Set(json.texts("ca_sha256")) }

    var allowed: String? {
        let keys = ["without_scheme", "ca_sha256", "tls_server_name", "insecure_skip_tls_verify", "proxy_url"]
        let set = keys.filter { json[$0] != nil }
        return set.isEmpty ? nil : set.joined(separator: ", ")
    }

    /// Nil for what this version cannot read.
    init?(_ json: JSON) {
        guard let url = json["url"]?.string, let pattern = try? OriginPattern(parsing: url),
            let account = json["account"]?.string, let source = AccountSource(of: json),
            let kind = TokenKind(rawValue: json["kind"]?.string ?? TokenKind.accessToken.rawValue)
        else { return nil }
        rule = OriginRule(pattern, username: json["match_username"]?.string)
        self.account = account
        self.kind = kind
        self.source = source
        self.json = json
    }

    static func all(in report: JSON) -> [OriginEntry] { report.list("origins").compactMap(OriginEntry.init) }

    static func pattern(_ text: String) throws(RingbackError) -> OriginPattern {
        do throws(OriginPattern.Failure) {
            return try OriginPattern(parsing: text)
        } catch {
            let shown = Sanitizer.line(text)
            let reason =
                switch error {
                case .plainText:
                    "\(shown) is not encrypted. A token is sent without encryption to this machine only: use https."
                case .notAURL where !text.contains("://"): "\(shown) has no scheme. Write https://\(shown)"
                default: "\(shown) is no URL of an origin, such as https://git.example.org/*"
                }
            throw RingbackError(ExitStatus.usageKind, reason)
        }
    }

    static func unusable(_ url: String) -> RingbackError {
        RingbackError(
            ExitStatus.usageKind,
            "\(Sanitizer.line(url)) is no URL such as https://git.example.org/team. It may have no user name.")
    }

    var given: String {
        let scope = scope.map { " with the scope \($0)" } ?? ""
        return "\(kind == .idToken ? "the ID token" : "the token") of \(account)\(scope)"
    }
}

struct OriginList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the origins of the configuration; needs no running daemon.")

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption

    func run() throws {
        let entries = OriginEntry.all(in: try config.file().report())
        guard !json.isWanted else { return Output.object(["origins": entries.map(\.json)]) }
        guard !entries.isEmpty else {
            return Output.note("There are no origins. Run: ringback origin add URL --account ACCOUNT")
        }
        let cells = entries.map {
            [
                $0.rule.pattern.text, $0.rule.username ?? "any", $0.account, $0.kind.rawValue, $0.scope ?? "",
                $0.source.text,
            ]
        }
        Output.table(["URL", "USER", "ACCOUNT", "TOKEN", "SCOPE", "FILE"], cells)
    }
}

struct OriginTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Say which origin of the configuration a URL belongs to; prints no token.",
        discussion: "Exit status 0: one fits; 1: none does. Needs no running daemon.")

    @Argument(help: "Where a tool would connect to.") var url: String
    @Option(help: "The user name that the tool would say.") var username: String?
    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption

    func run() throws {
        guard let url = try? WebURL(parsing: self.url), url.host?.isEmpty == false else {
            throw OriginEntry.unusable(self.url)
        }
        let entries = OriginEntry.all(in: try config.file().report())
        let place = OriginPlace(url)
        let found = OriginRule.mostSpecific(of: entries.map(\.rule), for: place, username: username)
        guard let entry = found.map({ entries[$0] }) else {
            throw RingbackError(.notFound, OriginTest.reason(entries, place, url))
        }
        guard !json.isWanted else { return Output.json(entry.json) }
        Output.fields([
            "Origin": entry.rule.pattern.text, "User": entry.rule.username, "File": entry.source.text,
            "Gives": entry.given,
        ])
        for header in entry.headers { Output.field("Sends", header) }
        Output.field("Allows", entry.allowed)
    }

    private static func reason(_ entries: [OriginEntry], _ place: OriginPlace, _ url: WebURL) -> String {
        let shown = Sanitizer.line(url.text, limit: 300)
        let users = entries.filter { $0.rule.pattern.matches(place) }.compactMap(\.rule.username)
        guard users.isEmpty else {
            return "The origins of \(shown) are for tools that say the user name \(users.joined(separator: " or ")). "
                + "Name it with --username."
        }
        let same = entries.filter {
            $0.rule.pattern.host == place.host && $0.rule.pattern.port == place.port
                && $0.rule.pattern.scheme == place.scheme
        }
        guard !same.isEmpty else { return "No origin of the configuration has the scheme, host and port of \(shown)." }
        return place.segments == nil
            ? "The path of \(shown) can be read in different ways, so it fits only an origin without a path."
            : "The origins of \(shown) have other paths: " + same.map(\.rule.pattern.text).joined(separator: ", ") + "."
    }
}

struct OriginAdd: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Let tools have an account's token for a server.",
        discussion: """
            Adds an [[origin]] table to the end of the configuration file, and lets a running daemon read it. Nothing is \
            written if the daemon's own check finds a mistake.
            """)

    @Argument(help: "Where the token may be sent: https://HOST/*, or https://HOST/PATH/* for a part of it.")
    var url: String

    @Option(help: "The account whose token it is.", completion: Completions.accounts) var account: String
    @Option(help: "Only for tools that say this user name.") var matchUsername: String?
    @OptionGroup var limits: TokenLimits
    @Option(help: "access_token (the default) or id_token.") var kind: TokenKind?
    @Option(help: "The user name for tools that want one.") var username: String?

    @Option(help: .value("field", "A field to send: “Name: value” with {token}. May be repeated."))
    var header: [String] = []

    @Flag(help: "Also for tools that do not say whether they use https, such as pnpm.") var withoutScheme = false

    @Option(help: .value("digest", "For kubectl: the SHA-256 of the cluster's certificate authority. May be repeated."))
    var caSha256: [String] = []

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var options: CallOptions

    func run() throws {
        let rule = OriginRule(try OriginEntry.pattern(url), username: matchUsername)
        let file = try config.file()
        if let known = OriginEntry.all(in: try file.report()).first(where: { $0.rule == rule }) {
            throw taken(known)
        }
        let added = try file.addOrigin(rule, table(rule))
        if let added { show(added, in: file) }
        try daemon.calls().reloadIfRunning()
    }

    private func taken(_ known: OriginEntry) -> RingbackError {
        let user = known.rule.username.map { " with --match-username \($0)" } ?? ""
        let option: ShownCommand = known.rule.username.map { "--match-username=\($0)" } ?? ""
        // Without the asterisk, which a shell would take for a pattern.
        let url = String(known.rule.pattern.text.dropLast("/*".count))
        return RingbackError(
            .invalidConfiguration, "\(known.rule.pattern.text)\(user) is there already: \(known.source.text).",
            advice: "To change it, remove it first. Run: \(shown: "ringback origin remove \(url) \(option)")")
    }

    private func table(_ rule: OriginRule) -> String {
        let text = { (value: String?) in value.map(AccountText.quoted) }
        let keys: [(String, String?)] = [
            ("url", text(rule.pattern.text)), ("account", text(account)), ("match_username", text(matchUsername)),
            ("scope", text(limits.scope)), ("audience", text(limits.audience)), ("resource", text(limits.resource)),
            ("kind", text(kind?.rawValue)), ("username", text(username)), ("header", AccountText.oneOrMore(header)),
            ("without_scheme", withoutScheme ? "true" : nil), ("ca_sha256", AccountText.array(caSha256)),
        ]
        return AccountText.table("[origin]", keys)
    }

    private func show(_ entry: OriginEntry, in file: ConfigurationFile) {
        guard !json.isWanted else { return Output.json(entry.json) }
        let user = entry.rule.username.map { " that say the user name \($0)" } ?? ""
        Output.line("Added to \(Sanitizer.line(file.path, limit: 600)): \(entry.rule.pattern.text)")
        Output.note("Tools\(user) get \(entry.given) there.")
        // Clusters check ID tokens; git sends access tokens.
        let tool = entry.kind == .idToken ? ToolName.kubectl : .git
        let standing = tool.readableStanding(for: OriginEntry.all(in: (try? file.report()) ?? .null))
        if entry.rule.pattern.scheme == "https", [.notSetUp, .inPart].contains(standing.state) {
            Output.note("For \(tool.rawValue), run: \(shown: "ringback setup \(tool.rawValue)")")
        }
    }
}

extension ConfigurationFile {
    func addOrigin(_ rule: OriginRule, _ table: String) throws(RingbackError) -> OriginEntry? {
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

struct OriginRemove: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Let tools have no token for a server any more.",
        discussion: "Removes the [[origin]] table with this URL from the configuration file. Everything else stays.")

    @Argument(help: "The origin's URL, as `ringback origin list` shows it.", completion: Completions.origins)
    var url: String

    @Option(help: "The one with this user name.") var matchUsername: String?
    @OptionGroup var config: ConfigurationOption
    @OptionGroup var options: CallOptions

    func run() throws {
        let pattern = try OriginEntry.pattern(url)
        let file = try config.file()
        let entries = OriginEntry.all(in: try file.report())
        let entry = try chosen(among: entries.filter { $0.rule.pattern == pattern }, pattern)
        var lines = ConfigurationLines(try file.text() ?? [])
        guard entry.source.file == file.path, let line = entry.source.line,
            lines.removeTable(OriginEntry.header, atLine: line)
        else {
            throw RingbackError(
                "origin_elsewhere",
                "This origin is in \(entry.source.text), in a form that this command does not change. Nothing was "
                    + "removed. Edit the file.")
        }
        let others = entries.map(\.rule).filter { $0 != entry.rule }
        try file.replace(with: lines.text) { OriginEntry.all(in: $0).map(\.rule) == others }
        json.print(
            entry.json, or: "Removed from \(Sanitizer.line(file.path, limit: 600)): \(pattern.text)")
        try daemon.calls().reloadIfRunning()
    }

    private func chosen(among entries: [OriginEntry], _ pattern: OriginPattern) throws(RingbackError) -> OriginEntry {
        let fitting = matchUsername == nil ? entries : entries.filter { $0.rule.username == matchUsername }
        guard let entry = fitting.first else {
            throw RingbackError(.notFound, "There is no origin \(pattern.text). To see all: ringback origin list")
        }
        // Without --match-username the one without a user name is meant, if there are several.
        guard fitting.count > 1 else { return entry }
        guard let general = fitting.first(where: { $0.rule.username == nil }) else {
            let users = fitting.compactMap(\.rule.username).joined(separator: ", ")
            throw RingbackError(ExitStatus.usageKind, "There are several: say which with --match-username (\(users)).")
        }
        return general
    }
}
