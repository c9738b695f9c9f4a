import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ConfigVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check the configuration.", subcommands: [ConfigCheck.self])
}

struct ConfigCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check the configuration; needs no running daemon.",
        discussion: """
            Asks no provider: ringback doctor does. Exit status 0: it is valid; 78: it has mistakes, which are listed.
            """)

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption

    func run() throws {
        guard !json.isWanted else { return try replaceProgram() }
        let report = try ConfigurationCheck.report(config.path)
        guard report["valid"] == true else {
            showMistakes(report)
            throw ExitCode(ExitStatus.badConfiguration)
        }
        show(report)
    }

    private func show(_ report: JSON) {
        var said: Set<String> = []
        let accounts = report.list("accounts")
        for account in accounts {
            show(account, "\(account.shown("provider")), \(account.shown("registration"))", &said)
            if let step = ConfigurationCheck.step(for: account) { Output.sentence(step, margin: 4) }
            if account.shown("provider") == "mcp" {
                Output.sentence(
                    "What the server announces now: \(shown: "ringback doctor \(account.shown("name"))")", margin: 4)
            }
        }
        if accounts.contains(where: { $0.shown("registration").contains("{port}") }) {
            Output.sentence(
                "{port} stands for a free port, another one at each sign-in. Register the address without “:{port}” "
                    + "where the provider ignores the port, else choose one: redirect_uri = "
                    + "\"http://127.0.0.1:8400/callback/ACCOUNT\"")
        }
        for scheme in report.list("schemes") {
            show(scheme, "", kind: "scheme ", &said)
            Output.line("    Run: \(shown: "ringback scheme register \(scheme.shown("name"))")")
        }
        for socket in report.list("exposes") {
            let shown = socket.texts("accounts").joined(separator: ", ")
            let what = socket["mcp"].map { "the MCP server of \(shown) with \(ExposeList.tools($0)), no token" }
            show(socket, what ?? "tokens of \(shown)", kind: "expose ", &said)
        }
        for origin in report.list("origins") {
            let user = origin["match_username"] == nil ? "" : " for \(origin.shown("match_username"))"
            let kind = TokenKind(rawValue: origin.shown("kind")) == .idToken ? "ID tokens" : "tokens"
            Output.line("origin \(origin.shown("url"))\(user): \(kind) of \(origin.shown("account"))")
        }
        if accounts.isEmpty { Output.line("No accounts. Add one: \(AccountAdd.command)") }
    }

    /// What is said of a scheme is said once, of whatever accounts and tables have it.
    private func show(_ entry: JSON, _ what: String, kind: String = "", _ said: inout Set<String>) {
        Output.sentence(
            Sanitizer.line("\(kind)\(entry.shown("name")):\(what.isEmpty ? "" : " \(what)")", limit: 4_000), indent: 4)
        for note in entry.texts("notes") where said.insert(note).inserted || !note.contains(" the scheme ") {
            Output.sentence(Sanitizer.line(note, limit: 600), margin: 4)
        }
    }

    private func showMistakes(_ report: JSON) {
        let mistakes = Failure.mistakes(report["errors"])
        for mistake in mistakes { Output.note(mistake) }
        Output.note("The configuration has \(mistakes.count == 1 ? "1 mistake" : "\(mistakes.count) mistakes").")
    }

    /// The daemon's program replaces this one: its report and its exit status are the result.
    private func replaceProgram() throws {
        let arguments = [Programs.path("ringbackd"), "--check-config", "--json"] + config.words
        _ = Replacement.run(arguments)
        Output.note("ringback: " + Programs.missing(Sanitizer.line(arguments[0])).detail)
        throw ExitCode(ExitStatus.failed)
    }
}

/// The daemon's own check of the configuration, as a program: there is one reader of TOML, and no daemon has to run.
enum ConfigurationCheck {
    static func run(config: String?, candidate: AccountFile? = nil) throws(RingbackError) -> JSON {
        try run(
            config, candidate.map { ["--candidate", $0.candidate.path] } ?? [],
            onMistakes: candidate == nil
                ? "The configuration has mistakes; nothing is added to it."
                : "The account would not work; nothing is written.", candidate)
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
                    extensions: ["errors": described(report["errors"], candidate), "draft": !arguments.isEmpty]))
        }
        return report
    }

    static func report(_ config: String?, _ arguments: [String] = []) throws(RingbackError) -> JSON {
        let place = config.map { ["--config", $0] } ?? []
        let answer = try Programs.run([Programs.path("ringbackd"), "--check-config", "--json"] + place + arguments)
        // The largest configuration that is allowed has about 15,000 accounts.
        guard let report = try? JSON(parsing: answer.output, maxValues: 1_000_000) else {
            throw RingbackError(
                .badResponse, "The check of the configuration ended with status \(answer.status) and no report.")
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

    static func redirectURIs(of account: JSON) -> [String] {
        let listed = account["redirect_uris"]?.array?.compactMap(\.string)
        return (listed ?? [account["redirect_uri"]?.string].compactMap { $0 }).filter { !$0.isEmpty }
    }

    static func account(_ name: String, in report: JSON) -> JSON? {
        report.list("accounts").first { $0["name"]?.string == name }
    }

    /// The mistakes. Those of the candidate, which is removed, have the option of `account add` that sets the key in
    /// the place of file and line (`place`).
    private static func described(_ errors: JSON?, _ candidate: AccountFile?) -> JSON {
        .array(
            (errors?.array ?? []).map { entry in
                guard let candidate, var object = entry.object, object["file"]?.string == candidate.candidate.path
                else { return entry }
                let key = object["key"]?.string ?? ""
                object.members.removeAll { ["file", "line"].contains($0.name) }
                object["place"] = .string(option(for: key, of: candidate.name) ?? key)
                return .object(object)
            })
    }

    private static func option(for key: String, of name: String) -> String? {
        let tables = [name, AccountText.quoted(name)].map { "accounts.\($0)." }
        guard let table = tables.first(where: { key.hasPrefix($0) }) else { return nil }
        return AccountDescription.option(for: String(key.dropFirst(table.count)))
    }
}

struct AccountEdit: AccountNaming {
    static let configuration = CommandConfiguration(
        commandName: "edit", abstract: "Edit the file that defines an account, and check it before it takes effect.",
        discussion: """
            Opens a copy of the file in $VISUAL, $EDITOR or vi. The file is replaced only if the daemon's own check finds no \
            mistake in the copy; otherwise the mistakes are shown and the copy can be edited again.
            """)

    @Argument(help: .value("name", "The account's name."), completion: Completions.accounts) var account: String
    @OptionGroup var config: ConfigurationOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let file = try place()
        let editor = try editor(for: file)
        let draft = try CandidateFile(following: file)
        let written = try Files.contents(of: file) ?? []
        try draft.write(written)
        defer { draft.discard() }
        while true {
            try edit(draft, by: editor)
            guard try Files.contents(of: draft.path) != written else { return Output.note("Nothing was changed.") }
            if try isGood(draft, in: file) { break }
            guard Console.Stream.input.isTerminal, Prompt.confirm("Edit it again?") else {
                throw RingbackError(
                    .invalidConfiguration, "\(draft.original) was not changed: your text has the mistakes above.",
                    advice: "Run: \(shown: "ringback account edit \(account)")")
            }
        }
        try draft.keep(replacing: true)
        Output.line("Changed \(draft.original)")
        try daemon.calls().reloadIfRunning()
    }

    private func place() throws(RingbackError) -> String {
        do throws(RingbackError) {
            let report = try ConfigurationCheck.run(config: config.path)
            guard let source = AccountSource(of: account, in: report) else {
                throw UnknownAccount.error(account, in: report)
            }
            return source.file
        } catch {
            // A file with a mistake can still be edited, if it is the one that `account add` writes.
            let file = try AccountFile(name: account, configuration: config.path)
            guard error.kind == .invalidConfiguration, file.exists else { throw error }
            for line in Failure.mistakes(error["errors"]) { Output.note(line) }
            return file.path
        }
    }

    /// The words of the editor's command. Without a terminal vi would wait for ever.
    private func editor(for file: String) throws(RingbackError) -> [String] {
        let stated = ["VISUAL", "EDITOR"].compactMap { SocketPlace.variable($0) }.first { !$0.isEmpty }
        guard stated != nil || (Console.Stream.input.isTerminal && Console.Stream.output.isTerminal) else {
            throw RingbackError(
                .validationFailed,
                "No editor is named, and there is no terminal for vi. Set EDITOR; or change "
                    + "\(Sanitizer.line(file, limit: 400)), and run: ringback reload")
        }
        return (stated ?? "vi").split(separator: " ").map(String.init)
    }

    private func edit(_ draft: CandidateFile, by editor: [String]) throws(RingbackError) {
        let command = ChildCommand()
        let status: Int32
        do throws(CommandFailure) {
            status = command.wait(for: try command.start(editor + [draft.path]))
        } catch {
            throw RingbackError(
                .systemError,
                "The editor \(Sanitizer.line(error.program)) cannot be started: "
                    + "\(unsafe String(cString: strerror(error.code))). Set EDITOR.")
        }
        guard status == 0 else {
            throw RingbackError(.cancelled, "The editor ended with status \(status). Nothing was changed.")
        }
    }

    private func isGood(_ draft: CandidateFile, in file: String) throws(RingbackError) -> Bool {
        do throws(RingbackError) {
            _ = try ConfigurationCheck.run(config: config.path, replacing: file, with: draft.path)
            return true
        } catch {
            guard error.kind == .invalidConfiguration else { throw error }
            for line in Failure.mistakes(error["errors"]) { Output.note(line) }
            return false
        }
    }
}
