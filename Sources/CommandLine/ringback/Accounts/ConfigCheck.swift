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

/// Runs the daemon's own check of the configuration as a program: there is one reader of TOML, and no daemon has to
/// run.
enum ConfigurationCheck {
    /// The report (`valid`, `accounts`, `errors`).
    ///
    /// - Parameter candidate: read as if it were in accounts.d already.
    /// - Throws: `invalid_configuration` with the mistakes, or why the check cannot be run.
    static func run(config: String?, candidate: AccountFile?) throws(RingbackError) -> JSON {
        guard let candidate else {
            return try run(config, [], onMistakes: "The configuration has mistakes; nothing is added to it.")
        }
        return try run(
            config, ["--candidate", candidate.candidate.path],
            onMistakes: "The account would not work; nothing is written.", candidate)
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
                    extensions: JSONObject([
                        .init("errors", described(report["errors"], candidate)),
                        .init("draft", .bool(!arguments.isEmpty)),
                    ])))
        }
        return report
    }

    /// The report as it is, also of a configuration with mistakes.
    static func report(_ config: String?, _ arguments: [String] = []) throws(RingbackError) -> JSON {
        let place = config.map { ["--config", $0] } ?? []
        let (status, output) = try Programs.run(
            [Programs.path("ringbackd"), "--check-config", "--json"] + place + arguments)
        // The largest configuration that is allowed has about 15,000 accounts.
        guard let report = try? JSON(parsing: output, maxValues: 1_000_000) else {
            throw RingbackError(
                .badResponse, "The check of the configuration ended with status \(status) and no report.")
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

    /// What to register at the provider for an account of the report.
    static func redirectURIs(of account: JSON) -> [String] {
        let listed = account["redirect_uris"]?.array?.compactMap(\.string)
        return (listed ?? [account["redirect_uri"]?.string].compactMap { $0 }).filter { !$0.isEmpty }
    }

    /// An account's entry of the report.
    static func account(_ name: String, in report: JSON) -> JSON? {
        report["accounts"]?.array?.first { $0["name"]?.string == name }
    }

    /// The mistakes. Those of the candidate, which is removed, have the option of `account add` that sets the key in the
    /// place of file and line (`place`).
    private static func described(_ errors: JSON?, _ candidate: AccountFile?) -> JSON {
        .array(
            (errors?.array ?? []).map { entry in
                guard let candidate, var object = entry.object,
                    object["file"]?.string == candidate.candidate.path
                else { return entry }
                let key = object["key"]?.string ?? ""
                object.members.removeAll { ["file", "line"].contains($0.name) }
                object["place"] = .string(option(for: key, of: candidate.name) ?? key)
                return .object(object)
            })
    }

    /// The option for `accounts.NAME.KEY`.
    private static func option(for key: String, of name: String) -> String? {
        let tables = [name, AccountText.quoted(name)].map { "accounts.\($0)." }
        guard let table = tables.first(where: { key.hasPrefix($0) }) else { return nil }
        return AccountDescription.option(for: String(key.dropFirst(table.count)))
    }
}

/// A file that is written beside another one, checked, and then takes its name.
struct CandidateFile {
    let original: String
    let path: String

    init(for original: String) {
        self.original = original
        let (folder, name) = CandidateFile.parts(of: original)
        // No `.toml` at the end: a daemon that reloads just now must not read it.
        path = "\(folder)/.\(name).\(getpid())"
    }

    /// Creates the file. Other users have no access to it.
    func write(_ bytes: [UInt8]) throws(RingbackError) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw CandidateFile.failure("write", path) }
        defer { close(file) }
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0 else {
            let failure = CandidateFile.failure("write", path)
            discard()
            throw failure
        }
    }

    /// Gives the file the name of the original, durably.
    ///
    /// - Parameter replaces: a file of that name may be there already, and is replaced.
    /// - Parameter mode: the file's new mode; nil keeps the mode with which it was written.
    func keep(replacing replaces: Bool, mode: mode_t? = nil) throws(RingbackError) {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw CandidateFile.failure("read", path) }
        defer { close(file) }
        guard mode.map({ fchmod(file, $0) == 0 }) ?? true, fsync(file) == 0 else {
            throw CandidateFile.failure("write", path)
        }
        // A link where nothing may be replaced, since a rename would replace it.
        let result = unsafe replaces ? rename(path, original) : link(path, original)
        guard result == 0 else { throw CandidateFile.failure(replaces ? "replace" : "write", original) }
        CandidateFile.syncFolder(of: original)
    }

    func discard() { unsafe unlink(path) }

    /// Syncs the file's directory, so that a rename or a removal is durable.
    static func syncFolder(of path: String) {
        let folder = parts(of: path).folder
        let descriptor = unsafe open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// The error of the last system call on a file, from `errno`.
    static func failure(_ verb: String, _ what: String) -> RingbackError {
        let reason = unsafe String(cString: strerror(errno))
        return RingbackError(.systemError, "Cannot \(verb) \(Sanitizer.line(what, limit: 600)): \(reason).")
    }

    private static func parts(of path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
