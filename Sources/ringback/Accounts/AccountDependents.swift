import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON

/// What else of the configuration needs an account that is to be removed. Its origins are removed with it. Everything
/// else that needs it, such as an exposed socket, prevents the removal: with an entry that names an account that does
/// not exist, the daemon would not start again.
struct AccountDependents {
    /// The account's origins.
    let origins: [OriginEntry]
    private let file: ConfigurationFile
    /// The configuration file without the account's origins; nil if it has none of them.
    private let rest: String?
    /// The origins of other accounts.
    private let others: [OriginRule]

    /// Reads the configuration, and checks it as it would be without the account. Changes nothing.
    ///
    /// - Parameter config: the value of `--config`.
    /// - Throws: `invalid_configuration` with what needs the account, or `origin_elsewhere` for an origin that no
    ///   command can remove.
    init(of account: AccountFile, config: String?) throws(RingbackError) {
        let report = try ConfigurationCheck.report(config)
        let entries = OriginEntry.all(in: report)
        origins = entries.filter { $0.account == account.name }
        others = entries.filter { $0.account != account.name }.map(\.rule)
        file = try ConfigurationFile(stated: config)
        let apart = origins.filter { $0.source.file != account.path }
        rest = try AccountDependents.text(of: file, without: apart)
        try AccountDependents.check(account, config, without: apart, before: report)
    }

    /// Removes the origins from the configuration file.
    func remove() throws(RingbackError) {
        guard let rest else { return }
        let own = Set(origins.map(\.rule))
        try file.replace(with: Array(rest.utf8)) { report in
            OriginEntry.all(in: report).map(\.rule).filter { !own.contains($0) } == others
        }
    }

    private static func text(
        of file: ConfigurationFile, without origins: [OriginEntry]
    ) throws(RingbackError) -> String? {
        guard !origins.isEmpty, let bytes = try file.text() else { return nil }
        var text = String(decoding: bytes, as: UTF8.self)
        // From the last to the first, so that the lines of the others stay what they are.
        for origin in origins.sorted(by: { ($0.source.line ?? 0) > ($1.source.line ?? 0) }) {
            guard origin.source.file == file.path, let line = origin.source.line,
                let rest = OriginTable.removing(line: line, from: text)
            else {
                throw RingbackError(
                    "origin_elsewhere",
                    "The origin \(origin.rule.pattern.text) in \(origin.source.text) has tokens of \(origin.account), "
                        + "in a form that this command does not change. Nothing was removed. Edit that file first.")
            }
            text = rest
        }
        return text
    }

    /// The daemon's own check of the configuration, with an empty file in place of the account's.
    private static func check(
        _ account: AccountFile, _ config: String?, without origins: [OriginEntry], before: JSON
    ) throws(RingbackError) {
        let empty = account.candidate
        try empty.write([])
        defer { empty.discard() }
        let after = try ConfigurationCheck.report(config, ["--draft", empty.path, "--draft-of", account.path])
        // Mistakes that are there already do not keep anybody from removing the account.
        let known = before["errors"]?.array ?? []
        let added = (after["errors"]?.array ?? []).filter { error in
            !known.contains(error)
                && !origins.contains {
                    $0.source.file == error["file"]?.string && $0.source.line == error["line"]?.integer
                }
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
