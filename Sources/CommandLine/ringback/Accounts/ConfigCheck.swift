import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
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

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @OptionGroup var json: JSONOption

    func run() throws {
        guard !json.isWanted else { return try replaceProgram() }
        var isValid = true
        try present { () throws(RingbackError) in
            let report = try ConfigurationCheck.report(config)
            isValid = report["valid"] == true
            if isValid { show(report) } else { showMistakes(report) }
        }
        if !isValid { throw ExitCode(ExitStatus.badConfiguration) }
    }

    /// A line for each account, scheme and exposed socket, with what to know about it below.
    private func show(_ report: JSON) {
        let accounts = report["accounts"]?.array ?? []
        for account in accounts {
            show(account, "\(text(account, "provider")), \(text(account, "registration"))")
            if let step = ConfigurationCheck.step(for: account) { Output.line("    \(step)") }
            if text(account, "provider") == "mcp" {
                Output.line("    What the server announces now: \(shown: "ringback doctor \(text(account, "name"))")")
            }
        }
        for scheme in report["schemes"]?.array ?? [] {
            show(scheme, "", kind: "scheme ")
            Output.line("    Run: \(shown: "ringback scheme register \(text(scheme, "name"))")")
        }
        for socket in report["exposes"]?.array ?? [] {
            let shown = (socket["accounts"]?.array ?? []).compactMap(\.string).joined(separator: ", ")
            let what = socket["mcp"].map { "the MCP server of \(shown) with \(ExposeList.tools($0)), no token" }
            show(socket, what ?? "tokens of \(shown)", kind: "expose ")
        }
        for origin in report["origins"]?.array ?? [] {
            let user = origin["match_username"] == nil ? "" : " for \(text(origin, "match_username"))"
            let kind = TokenKind(rawValue: text(origin, "kind")) == .idToken ? "ID tokens" : "tokens"
            Output.line("origin \(text(origin, "url"))\(user): \(kind) of \(text(origin, "account"))")
        }
        if accounts.isEmpty {
            Output.line("No accounts. Add one: \(AccountAdd.command)")
        }
    }

    private func show(_ entry: JSON, _ what: String, kind: String = "") {
        Output.line(Sanitizer.line("\(kind)\(text(entry, "name")):\(what.isEmpty ? "" : " \(what)")", limit: 4_000))
        for note in (entry["notes"]?.array ?? []).compactMap(\.string) {
            Output.line("    \(Sanitizer.line(note, limit: 600))")
        }
    }

    private func text(_ entry: JSON, _ member: String) -> String {
        Sanitizer.line(entry[member]?.string ?? "", limit: 4_000)
    }

    private func showMistakes(_ report: JSON) {
        let mistakes = Failure.mistakes(report["errors"])
        for mistake in mistakes { Output.note(mistake) }
        Output.note("The configuration has \(mistakes.count == 1 ? "1 mistake" : "\(mistakes.count) mistakes").")
    }

    /// The daemon's program replaces this one: its report and its exit status are the result.
    private func replaceProgram() throws {
        let arguments =
            [Programs.path("ringbackd"), "--check-config", "--json"] + (config.map { ["--config", $0] } ?? [])
        var vector = unsafe arguments.map { unsafe strdup($0) }
        unsafe vector.append(nil)
        unsafe execvp(arguments[0], vector)
        Output.note(
            "ringback: \(Sanitizer.line(arguments[0])) cannot be started: install it beside ringback, or in PATH.")
        throw ExitCode(ExitStatus.failed)
    }
}
