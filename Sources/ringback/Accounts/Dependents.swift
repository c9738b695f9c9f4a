import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON

/// What else of the configuration needs an account that is to be removed. Its origins and the key `default` that names it
/// are removed with it. Everything else that needs it, such as an exposed socket, prevents the removal: the daemon does not
/// start with an entry that names an account that does not exist.
struct AccountDependents {
    /// The account's origins.
    let origins: [OriginEntry]
    /// True if it is the default account.
    let isDefault: Bool
    private let file: ConfigurationFile
    /// The configuration file without the account's origins and without the key `default`; nil if it has none of them.
    private let rest: ConfigurationLines?
    /// The origins of other accounts.
    private let others: [OriginRule]

    /// Reads the configuration, and checks it as it would be without the account. Changes nothing.
    ///
    /// - Parameter config: the value of `--config`.
    /// - Throws: `invalid_configuration` with what needs the account, `origin_elsewhere` for an origin that no command can
    ///   remove, or `account_elsewhere` for such a key `default`.
    init(of account: AccountFile, config: String?) throws(RingbackError) {
        let report = try ConfigurationCheck.report(config)
        let entries = OriginEntry.all(in: report)
        origins = entries.filter { $0.account == account.name }
        others = entries.filter { $0.account != account.name }.map(\.rule)
        file = try ConfigurationFile(stated: config)
        let apart = origins.filter { $0.source.file != account.path }
        let entry = report["default"]
        isDefault = entry?["account"]?.string == account.name
        let source = isDefault ? AccountSource(parsing: entry?["source"]?.string ?? file.path) : nil
        rest = try AccountDependents.lines(of: file, without: apart, source.map { (account.name, $0) })
        let removed = apart.map(\.source) + [source].compactMap(\.self)
        try AccountDependents.check(account, config, without: removed, before: report)
    }

    /// Removes the origins and the key `default` from the configuration file.
    func remove() throws(RingbackError) {
        guard let rest else { return }
        let own = Set(origins.map(\.rule))
        try file.replace(with: rest.text) { report in
            OriginEntry.all(in: report).map(\.rule).filter { !own.contains($0) } == others
                && !(isDefault && report["default"] != nil)
        }
    }

    private static func lines(
        of file: ConfigurationFile, without origins: [OriginEntry], _ standard: (name: String, source: AccountSource)?
    ) throws(RingbackError) -> ConfigurationLines? {
        guard !origins.isEmpty || standard != nil, let bytes = try file.text() else { return nil }
        var lines = ConfigurationLines(bytes)
        // From the last to the first, so that the lines of the others stay what they are.
        for origin in origins.sorted(by: { ($0.source.line ?? 0) > ($1.source.line ?? 0) }) {
            guard origin.source.file == file.path, let line = origin.source.line,
                lines.removeTable(OriginEntry.header, atLine: line)
            else {
                throw RingbackError(
                    "origin_elsewhere",
                    "The origin \(origin.rule.pattern.text) in \(origin.source.text) has tokens of \(origin.account), "
                        + "in a form that this command does not change. Nothing was removed. Edit that file first.")
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
        // Mistakes that are there already do not keep anybody from removing the account.
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
