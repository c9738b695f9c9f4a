import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

/// What to say about a verb that does not exist. Users type verbs of other programs, and make typing mistakes.
struct Suggestion {
    let typed: [String]
    let command: ShownCommand?

    var lines: [String] {
        let shown = Sanitizer.line(typed.joined(separator: " "), limit: 120)
        let help = ShownCommand("ringback \(ShownCommand(words: Array(typed.dropLast()))) --help")
        let start = "ringback: There is no verb “\(shown)”."
        guard let command else { return ["\(start) For a list of verbs, run: \(shown: help)"] }
        return ["\(start) Did you mean: \(shown: command)", "For a list of verbs, run: \(shown: help)"]
    }

    /// The mistake in a command line; nil where every word that has to be a verb is one.
    static func find(in arguments: [String]) -> Suggestion? {
        var command: any ParsableCommand.Type = Ringback.self
        var typed: [String] = []
        for word in arguments {
            let children = command.configuration.subcommands
            // A word that begins with a dash is an option, which the parser checks.
            guard !children.isEmpty, !word.hasPrefix("-"), !(typed.isEmpty && word == "help") else { return nil }
            typed.append(word)
            if let child = children.first(where: { $0._commandName == word }) {
                command = child
            } else if command.configuration.defaultSubcommand != nil {
                return nil
            } else {
                let rest = Array(arguments.dropFirst(typed.count))
                return Suggestion(typed: typed, command: meant(typed, rest, children.map { $0._commandName }))
            }
        }
        return nil
    }

    private static func meant(_ typed: [String], _ rest: [String], _ names: [String]) -> ShownCommand? {
        let words = typed.map { $0.lowercased() }
        let last = words.last ?? ""
        // `auth login`, as some programs have it: the verb follows its group.
        if words == ["auth"], let verb = rest.first {
            if let known = synonyms[verb.lowercased()] { return filled(known, Array(rest.dropFirst())) }
            let verbs = Ringback.configuration.subcommands.map { $0._commandName }
            if let name = NearestWord.find(for: verb, among: verbs) { return line([name] + rest.dropFirst()) }
        }
        if let known = synonyms[words.joined(separator: " ")] { return filled(known, rest) }
        // A verb without its group, or within another one: `ringback factors`, `ringback supabase login`.
        let groups: [any ParsableCommand.Type] = [Ringback.self] + Ringback.configuration.subcommands
        if let group = groups.first(where: { $0.configuration.subcommands.contains { $0._commandName == last } }) {
            return line((group == Ringback.self ? [] : [group._commandName]) + [last] + rest)
        }
        // With two letters changed, a word of four letters is another word.
        let most = last.utf8.count > 4 ? nil : 1
        if last.utf8.count > 2, let name = NearestWord.find(for: last, among: names, changing: most) {
            return line(typed.dropLast() + [name] + rest)
        }
        if let known = nearSynonym(of: words) { return filled(known, rest) }
        return typed.count > 1 ? synonyms[last].map { filled($0, rest) } : nil
    }

    /// What a word of other programs means here, if it was mistyped (`account lst`). There are many such words, most of
    /// them short, and every short word is near one of them: at most a quarter of the letters may differ.
    private static func nearSynonym(of words: [String]) -> String? {
        guard let last = words.last, last.utf8.count > 2 else { return nil }
        let group = words.dropLast().map { $0 + " " }.joined()
        let known = synonyms.keys.filter { $0.hasPrefix(group) }.map { String($0.dropFirst(group.count)) }
        let near = NearestWord.find(
            for: last, among: known.filter { !$0.contains(" ") }.sorted(), changing: max(1, last.utf8.count / 4))
        return near.flatMap { synonyms[group + $0] }
    }

    /// The command with the one word that was typed behind the verb, in the place of an account's name.
    private static func filled(_ command: String, _ rest: [String]) -> ShownCommand {
        let name = rest.count == 1 ? rest.first.flatMap { RequestTarget.isAccountName($0) ? $0 : nil } : nil
        let words = command.split(separator: " ").map(String.init)
        return ShownCommand(words: words.map { ["ACCOUNT", "NAME"].contains($0) ? name ?? $0 : $0 })
    }

    private static func line(_ words: [String]) -> ShownCommand { ShownCommand(words: ["ringback"] + words) }

    static let synonyms: [String: String] = {
        let meanings = """
            ringback accounts: list, ls, users, account list, account ls, account status, profiles, config list, config ls
            ringback accounts ACCOUNT: account show, account info, show, account get
            ringback session ACCOUNT: whoami, me, who, id, userinfo, user-info
            ringback login ACCOUNT --switch: switch, account switch, switch-user, change-user
            ringback login ACCOUNT: signin, sign-in, log-in, logon, connect, authenticate, auth
            ringback login ACCOUNT --method sign_up --email ADDRESS: signup, sign-up, register
            ringback logout ACCOUNT: signout, sign-out, log-out, logoff, disconnect
            ringback token ACCOUNT: get, get-token, print-token, access-token, print-access-token
            ringback account add NAME: add, new, init, configure, account new, account create, account register, add-account
            ringback account remove NAME: account delete, account rm, account del, account uninstall, remove, rm, delete, \
            remove-account, delete-account
            ringback account edit NAME: account change, account modify, account update, account set, edit, edit-account
            ringback use ACCOUNT: default, set-default, account use, account default
            ringback --version: version
            ringback exec ACCOUNT -- COMMAND: run, with, wrap
            ringback events: watch, tail, monitor, listen
            ringback audit: log, logs, history
            ringback status: ping, info, health, ps, flows, flow, flow list, flows list, pending
            ringback refresh ACCOUNT: renew
            ringback config check: check, validate, config validate, config test, lint
            ringback complete: callback, paste
            ringback expose --help: share, grant, grants
            ringback scheme register SCHEME: register-scheme, handler
            ringback supabase user ACCOUNT: profile
            ringback supabase reset-password ACCOUNT --email ADDRESS: forgot-password, password, passwd
            ringback supabase factors ACCOUNT: mfa, 2fa, totp
            ringback --generate-completion-script bash: completion, completions
            systemctl --user start ringback.socket: start, serve, daemon, server
            systemctl --user stop ringback.socket ringback.service: stop, quit, kill
            systemctl --user restart ringback.service: restart
            """
        var table: [String: String] = [:]
        for line in meanings.split(separator: "\n") {
            let parts = line.split(separator: ": ").map(String.init)
            for word in parts[1].split(separator: ", ") { table[String(word)] = parts[0] }
        }
        return table
    }()
}

/// The parser's message about a mistake in the options, corrected where it would mislead.
enum UsageMistake {
    static func mended(_ message: String, _ arguments: [String]) -> String {
        let text = corrected(message, arguments)
        return text.hasPrefix("Error: ") ? "ringback: \(text.dropFirst(7))" : text
    }

    private static func corrected(_ message: String, _ arguments: [String]) -> String {
        let start = "Error: Unknown option '--"
        guard message.hasPrefix(start) else { return message }
        let name = String(message.dropFirst(start.count).prefix { $0 != "'" })
        // The parser looks for the nearest name, which for `--browser` is the opposite: `--no-browser`.
        if message.contains("Did you mean '--no-\(name)'?") {
            return message.replacing(
                "Unknown option '--\(name)'. Did you mean '--no-\(name)'?",
                with: "Unknown option '--\(name)'. It is the default; --no-\(name) turns it off.")
        }
        if name.hasPrefix("no-"), message.contains("Did you mean '--\(name.dropFirst(3))'?") {
            return message.replacing(
                ". Did you mean '--\(name.dropFirst(3))'?", with: ". It needs none: leave --\(name.dropFirst(3)) out.")
        }
        if let verb = arguments.first(where: { !$0.hasPrefix("-") }), arguments.first?.hasPrefix("-") == true {
            return message.replacing(
                "Unknown option '--\(name)'",
                with: "Unknown option '--\(name)' before the verb: options follow “\(verb)”")
        }
        guard let meant = arguments.first.flatMap({ synonyms[$0]?[name] }) else { return message }
        let line = message.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        return message.replacing(line, with: "Error: Unknown option '--\(name)'. Did you mean '\(meant)'?")
    }

    private static let synonyms: [String: [String: String]] = [
        "login": [
            "provider": "--with", "idp": "--with", "user": "--email", "username": "--email", "mail": "--email",
            "headless": "--no-browser", "device": "--method device", "device-code": "--method device",
            "use-device-code": "--method device", "password": "--method password", "otp": "--method otp",
            "force": "--switch", "scope": "--scopes",
        ],
        "token": ["scopes": "--scope", "login": "--sign-in", "output": "--format"],
        "logout": ["no-hint": "--no-browser", "everywhere": "--scope global", "global": "--scope global"],
    ]
}
