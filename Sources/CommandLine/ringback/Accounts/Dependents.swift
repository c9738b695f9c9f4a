import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// What else of the configuration needs an account that is to be removed. Its origins, its kept files and the key `default`
/// that names it are removed with it, and it is taken out of the `[[expose]]` tables. Everything else that needs it prevents
/// the removal: the daemon does not start with an entry that names an account that does not exist.
struct AccountDependents {
    /// A `[[expose]]` table that names the account.
    struct Socket {
        let name: String
        /// The other accounts of the socket. Without any, the table is removed.
        let others: [String]
        let source: AccountSource

        init?(_ json: JSON, of account: String) {
            let accounts = (json["accounts"]?.array ?? []).compactMap(\.string)
            guard accounts.contains(account), let name = json["name"]?.string, let source = AccountSource(of: json)
            else { return nil }
            self.name = name
            others = accounts.filter { $0 != account }
            self.source = source
        }

        /// What happens to the socket, as a sentence.
        var text: String {
            others.isEmpty
                ? "The restricted socket \(Sanitizer.line(name)) is removed: it has no other account."
                : "The restricted socket \(Sanitizer.line(name)) no longer serves this account. It still serves "
                    + Sanitizer.line(others.joined(separator: ", ")) + "."
        }

        var json: JSON {
            [
                "name": .string(name), "removed": .bool(others.isEmpty),
                "accounts": .array(others.map { .string($0) }),
            ]
        }
    }

    /// One change of the configuration file.
    private struct Change {
        let what: String
        let source: AccountSource
        /// False if the table has another form than this command changes.
        let make: (inout ConfigurationLines, Int) -> Bool
    }

    /// The account's origins.
    let origins: [OriginEntry]
    /// The paths of the account's kept files.
    let files: [String]
    /// The `[[expose]]` tables that name the account.
    let sockets: [Socket]
    /// True if it is the default account.
    let isDefault: Bool
    private let name: String
    private let file: ConfigurationFile
    /// The configuration file without the account's entries; nil if it has none of them.
    private let rest: ConfigurationLines?
    /// What the report must say of other accounts after the removal.
    private let others: JSON

    /// Reads the configuration, and checks it as it would be without the account. Changes nothing.
    ///
    /// - Parameter config: the value of `--config`.
    /// - Throws: `invalid_configuration` with what needs the account, `origin_elsewhere` for an entry that no command can
    ///   remove, or `account_elsewhere` for such a key `default`.
    init(of account: AccountFile, config: String?) throws(RingbackError) {
        let report = try ConfigurationCheck.report(config)
        let name = account.name
        self.name = name
        origins = OriginEntry.all(in: report).filter { $0.account == name }
        let kept = (report["kept_files"]?.array ?? []).filter { $0["account"]?.string == name }
        files = kept.compactMap { $0["path"]?.string }
        sockets = (report["exposes"]?.array ?? []).compactMap { Socket($0, of: name) }
        others = AccountDependents.others(than: name, in: report)
        file = try ConfigurationFile(stated: config)
        let entry = report["default"]
        isDefault = entry?["account"]?.string == name
        let standard = isDefault ? AccountSource(of: entry) ?? AccountSource(file: file.path) : nil
        let changes = (AccountDependents.removals(origins, kept) + sockets.map { AccountDependents.change($0, name) })
            .filter { $0.source.file != account.path }
        rest = try AccountDependents.lines(of: file, after: changes, standard.map { (name, $0) })
        let removed = changes.map(\.source) + [standard].compactMap(\.self)
        try AccountDependents.check(account, config, without: removed, before: report)
    }

    /// A sentence for everything that is removed besides the account and its origins.
    var consequences: [String] {
        files.map { "The file \(Sanitizer.line($0)) is not kept any more." } + sockets.map(\.text)
    }

    /// Removes what names the account from the configuration file.
    func remove() throws(RingbackError) {
        guard let rest else { return }
        try file.replace(with: rest.text) { report in
            AccountDependents.others(than: name, in: report) == others && !(isDefault && report["default"] != nil)
        }
    }

    /// What a report has of other accounts: their origins, their kept files, and the restricted sockets without this one.
    private static func others(than name: String, in report: JSON) -> JSON {
        func others(_ list: String) -> [JSON] {
            (report[list]?.array ?? []).filter { $0["account"]?.string != name }
        }
        let sockets = (report["exposes"]?.array ?? []).compactMap { socket -> JSON? in
            let accounts = (socket["accounts"]?.array ?? []).filter { $0.string != name }
            return accounts.isEmpty ? nil : [socket["name"] ?? "", .array(accounts)]
        }
        return [
            .array(others("origins").map { [$0["url"] ?? "", $0["match_username"] ?? "", $0["account"] ?? ""] }),
            .array(others("kept_files").map { [$0["path"] ?? "", $0["account"] ?? ""] }), .array(sockets),
        ]
    }

    private static func removals(_ origins: [OriginEntry], _ files: [JSON]) -> [Change] {
        let origins = origins.map { origin in
            Change(what: "The origin \(origin.rule.pattern.text)", source: origin.source) { lines, line in
                lines.removeTable(OriginEntry.header, atLine: line)
            }
        }
        let files = files.compactMap { file -> Change? in
            guard let source = AccountSource(of: file) else { return nil }
            return Change(what: "The kept file \(Sanitizer.line(file["path"]?.string ?? ""))", source: source) {
                lines, line in lines.removeTable("[[file]]", atLine: line)
            }
        }
        return origins + files
    }

    private static func change(_ socket: Socket, _ name: String) -> Change {
        let header = "[[expose]]"
        return Change(what: "The restricted socket \(Sanitizer.line(socket.name))", source: socket.source) {
            lines, line in
            socket.others.isEmpty
                ? lines.removeTable(header, atLine: line)
                : lines.removeAccount(name, fromTable: header, atLine: line)
        }
    }

    private static func lines(
        of file: ConfigurationFile, after changes: [Change], _ standard: (name: String, source: AccountSource)?
    ) throws(RingbackError) -> ConfigurationLines? {
        guard !changes.isEmpty || standard != nil, let bytes = try file.text() else { return nil }
        var lines = ConfigurationLines(bytes)
        // From the last to the first, so that the lines of the others stay what they are.
        for change in changes.sorted(by: { ($0.source.line ?? 0) > ($1.source.line ?? 0) }) {
            guard change.source.file == file.path, let line = change.source.line, change.make(&lines, line) else {
                throw RingbackError(
                    "origin_elsewhere",
                    "\(change.what) in \(change.source.text) has the account, in a form that this command does not "
                        + "change. Nothing was removed. Edit that file first.")
            }
        }
        guard let standard else { return lines }
        guard lines.defaultAccount == standard.name, lines.removeDefault() else {
            throw RingbackError(
                "account_elsewhere",
                "\(standard.name) is the default account (\(standard.source.text)), in a form that this command does not "
                    + "change. Nothing was removed. Edit the file.")
        }
        return lines
    }

    /// The daemon's own check of the configuration, with an empty file in place of the account's.
    private static func check(
        _ account: AccountFile, _ config: String?, without removed: [AccountSource], before: JSON
    ) throws(RingbackError) {
        let empty = account.candidate
        try empty.write([])
        defer { empty.discard() }
        let after = try ConfigurationCheck.report(config, ["--draft", empty.path, "--draft-of", account.path])
        // Mistakes that the file has already do not prevent the removal of the account.
        let known = before["errors"]?.array ?? []
        let added = (after["errors"]?.array ?? []).filter { error in
            !known.contains(error)
                && !removed.contains { $0.file == error["file"]?.string && $0.line == error["line"]?.integer }
        }
        guard !added.isEmpty else { return }
        throw RingbackError(
            Problem(
                .invalidConfiguration,
                "Without \(account.name) the configuration would have mistakes. Nothing was removed. Change what needs "
                    + "the account first.",
                extensions: JSONObject([.init("errors", .array(added))])))
    }
}
