internal import ArgumentParser
internal import Terminal

/// What `ringback --help` prints: one screen of what people type. `--help-all` lists every verb.
enum ShortHelp {
    /// Verbs with a line of their own.
    private static let explained: [any ParsableCommand.Type] = [
        Demo.self, AccountVerbs.self, Login.self, Logout.self, ShowAccounts.self, Token.self, Exec.self, Setup.self,
        OriginVerbs.self, Doctor.self,
    ]
    /// Verbs that are named only.
    private static let named: [any ParsableCommand.Type] = [
        Use.self, Verify.self, Complete.self, Cancel.self, ShowSession.self, Refresh.self, ExposeVerbs.self, Env.self,
        Agent.self, ShowStatus.self, Events.self, Audit.self, SchemeVerbs.self, SupabaseVerbs.self, Lock.self,
        Unlock.self, VaultVerbs.self, ConfigVerbs.self, Reload.self,
    ]

    /// The page for these arguments; nil if they ask for something else.
    static func page(for arguments: [String]) -> String? {
        switch arguments {
        case ["--help"], ["-h"], ["help"]: text
        case ["--help-all"]: Ringback.helpMessage()
        default: nil
        }
    }

    static var text: String {
        let names = explained.map { $0._commandName }
        let width = names.map(\.count).max() ?? 0
        let rows = zip(names, explained).map { name, verb in
            "  \(name)\(String(repeating: " ", count: width - name.count))  \(verb.configuration.abstract)"
        }
        let others = named.map { $0._commandName }
        return """
            \(Ringback.configuration.abstract)

            Usage: ringback [VERB]   (without a verb: how things stand, what to do next)

            \(rows.joined(separator: "\n"))

            Also: \(others.prefix(9).joined(separator: ", ")),
            \(others.dropFirst(9).joined(separator: ", ")).

            ringback VERB --help explains a verb; ringback --help-all lists all verbs.
            """
    }
}
