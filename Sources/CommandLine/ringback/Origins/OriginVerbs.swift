import ArgumentParser
import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct OriginVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origin", abstract: "Say which account's token tools get for which server.",
        subcommands: [OriginAdd.self, OriginList.self, OriginRemove.self, OriginTest.self])
}

/// The option for another configuration file, on every verb about origins.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var path: String?

    func file() throws(RingbackError) -> ConfigurationFile { try ConfigurationFile(stated: path) }
}

/// A table of origins, as the configuration's report has it.
struct OriginEntry {
    /// What a table of the file begins with.
    static let header = "[[origin]]"

    let rule: OriginRule
    let account: String
    let kind: TokenKind
    let scope: String?
    let headers: [String]
    let source: AccountSource
    let json: JSON

    /// The SHA-256 of the certificate authorities that are allowed beside the system's.
    var authorities: Set<String> { Set((json["ca_sha256"]?.array ?? []).compactMap(\.string)) }

    /// What is allowed of a tool's connection, as the configuration's keys.
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
        scope = json["scope"]?.string
        headers = (json["headers"]?.array ?? []).compactMap(\.string)
        self.source = source
        self.json = json
    }

    /// All of a report, in the order of the file.
    static func all(in report: JSON) -> [OriginEntry] {
        (report["origins"]?.array ?? []).compactMap(OriginEntry.init)
    }

    /// Reads a URL that the user typed for an origin.
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

    /// What is said of a text that is no URL to look up.
    static func unusable(_ url: String) -> RingbackError {
        RingbackError(
            ExitStatus.usageKind,
            "\(Sanitizer.line(url)) is no URL such as https://git.example.org/team. It may have no user name.")
    }

    /// What is given: tokens of an account.
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
        try present { () throws(RingbackError) in
            let entries = OriginEntry.all(in: try config.file().report())
            guard !json.isWanted else { return Output.json(["origins": .array(entries.map(\.json))]) }
            guard !entries.isEmpty else {
                return Output.note("There are no origins. Run: ringback origin add URL --account ACCOUNT")
            }
            var table = Table(columns: ["URL", "USER", "ACCOUNT", "TOKEN", "SCOPE", "FILE"])
            for entry in entries {
                table.add([
                    entry.rule.pattern.text, entry.rule.username ?? "any", entry.account, entry.kind.rawValue,
                    entry.scope ?? "", entry.source.text,
                ])
            }
            Output.table(table)
        }
    }
}

struct OriginTest: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Say which origin of the configuration a URL belongs to; prints no token.",
        discussion: "Exit status 0: one fits; 1: none does. Needs no running daemon.")

    @Argument(help: "Where a tool would connect to.")
    var url: String

    @Option(help: "The user name that the tool would say.")
    var username: String?

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption

    func run() throws {
        try present { () throws(RingbackError) in
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
            Output.field("Origin", entry.rule.pattern.text)
            Output.field("User", entry.rule.username)
            Output.field("File", entry.source.text)
            Output.field("Gives", entry.given)
            for header in entry.headers { Output.field("Sends", header) }
            Output.field("Allows", entry.allowed)
        }
    }

    /// Why no origin fits.
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
            : "The origins of \(shown) have other paths: "
                + same.map(\.rule.pattern.text).joined(separator: ", ") + "."
    }
}
