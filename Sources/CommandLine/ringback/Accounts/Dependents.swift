import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// What else of the configuration needs an account that is to be removed: origins, kept files, restricted sockets, the key
/// `default`, other accounts. The daemon does not start with an entry that names an account that does not exist.
enum AccountDependents {
    /// The daemon's own check of the configuration, with an empty file in place of the account's. Changes nothing.
    ///
    /// - Parameter config: the value of `--config`.
    /// - Throws: `invalid_configuration` with what needs the account, and the commands that remove it.
    static func refuse(_ account: AccountFile, config: String?) throws(RingbackError) {
        let before = try ConfigurationCheck.report(config)
        let empty = account.candidate
        try empty.write([])
        defer { empty.discard() }
        let after = try ConfigurationCheck.report(config, ["--draft", empty.path, "--draft-of", account.path])
        // Mistakes that the configuration has already do not prevent the removal of the account.
        let known = before["errors"]?.array ?? []
        let found = needs(of: account, in: before)
        // The check ends with the first kind of mistake, so it alone does not find everything. It finds what needs the
        // account in other ways, such as an account that signs in with it.
        let added =
            found
            + (after["errors"]?.array ?? []).filter { error in
                !known.contains(error) && !found.contains { isAt($0, error) }
            }
        guard !added.isEmpty else { return }
        var error = RingbackError(
            Problem(
                .invalidConfiguration,
                "Something else of the configuration needs the account \(account.name). Nothing was removed.",
                extensions: JSONObject([.init("errors", .array(added))])))
        error.advice = advice(on: added, account.name, before, config)
        throw error
    }

    /// The tables and the key `default` outside of the account's own file that name it, each as an error of the check is.
    private static func needs(of account: AccountFile, in report: JSON) -> [JSON] {
        let lists: [(key: String, entries: [JSON])] = [
            ("default", [report["default"]].compactMap(\.self)), ("origin", report["origins"]?.array ?? []),
            ("file", report["kept_files"]?.array ?? []), ("expose", report["exposes"]?.array ?? []),
        ]
        return lists.flatMap { list in
            list.entries.compactMap { entry -> JSON? in
                let names = (entry["accounts"]?.array ?? []) + [entry["account"]].compactMap(\.self)
                guard names.contains(.string(account.name)), let source = AccountSource(of: entry),
                    source.file != account.path
                else { return nil }
                var error = JSONObject([
                    .init("file", .string(source.file)), .init("key", .string(list.key)),
                    .init("message", .string("it names \(account.name)")),
                ])
                error["line"] = source.line.map { .integer($0) }
                return .object(error)
            }
        }
    }

    private static func advice(on errors: [JSON], _ name: String, _ report: JSON, _ config: String?) -> String {
        let more: ShownCommand = config.map { ShownCommand("--config=\($0)") } ?? ""
        let origins = OriginEntry.all(in: report).filter { origin in
            origin.account == name && errors.contains { isAbout(origin.source, $0) }
        }
        var commands = origins.map { origin in
            let user: ShownCommand = origin.rule.username.map { ShownCommand("--match-username=\($0)") } ?? ""
            return ShownCommand("ringback origin remove \(origin.rule.pattern.text) \(user) \(more)")
        }
        // What no verb removes is edited.
        let rest = errors.filter { error in !origins.contains { isAbout($0.source, error) } }
        var files: [String] = []
        for file in rest.compactMap({ $0["file"]?.string }) where !files.contains(file) { files.append(file) }
        commands += files.map { ShownCommand("${EDITOR:-vi} \($0)") }
        commands.append(ShownCommand("ringback account remove \(name) \(more)"))
        return "Remove that first, then the account: " + commands.map { "\(shown: $0)" }.joined(separator: "; ")
    }

    private static func isAt(_ left: JSON, _ right: JSON) -> Bool {
        left["file"] == right["file"] && left["line"] == right["line"]
    }

    private static func isAbout(_ source: AccountSource, _ error: JSON) -> Bool {
        source.file == error["file"]?.string && source.line == error["line"]?.integer
    }
}
