import Adapters
import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient
import Terminal

extension ToolName: ExpressibleByArgument {}

/// Writes what a tool needs into the tool's own configuration. The change is shown first.
struct Setup: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup", abstract: "Make \(ToolName.list) ask Ringback for tokens.",
        discussion: """
            Without a tool it lists for which servers each tool asks Ringback. The [[origin]] tables of the configuration \
            say for which servers a tool is set up (ringback origin add URL --account ACCOUNT). The change is shown, and \
            made after a question. --undo removes what this command wrote, as far as it is unchanged.
            """)

    @Argument(help: "\(ToolName.list).")
    var tool: ToolName?

    @Option(
        help:
            "Only the origins of this account. For kubectl: always this account's token, whatever the server.",
        completion: Completions.accounts)
    var account: String?

    @Flag(help: "Remove what this command wrote.")
    var undo = false

    @Flag(name: .customLong("print"), help: "Show the change and make none.")
    var onlyPrints = false

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption

    func validate() throws {
        if tool == nil, undo || onlyPrints || yes || account != nil {
            throw ValidationError("Name the tool: \(ToolName.list).")
        }
        if tool != nil, json.isWanted { throw ValidationError("--json is for the list of the tools.") }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            guard let tool else { return try list() }
            let setup = try tool.setup()
            // What was written stays to be removed after the tool itself was.
            guard setup.isInstalled || (undo && !setup.needsProgramToUndo) else { throw Setup.notInstalled(setup) }
            if !onlyPrints, let home = SocketPlace.variable("HOME") { try HomeFile.refuseForeign(home) }
            let plan = try plan(of: setup)
            for step in plan.steps { Output.line(Sanitizer.line(step.text, limit: 4_000)) }
            guard !plan.steps.isEmpty else {
                Output.note(undo ? "There is nothing to remove." : "There is nothing to change.")
                return Setup.show(plan.notes)
            }
            guard !onlyPrints else { return Setup.show(plan.notes) }
            if !yes { try SetupQuestion.ask(command(tool), isRemoval: undo) }
            // The list is written first. If this is interrupted, an entry may be in the list alone, which does no harm. An
            // entry in the tool alone would never be removed.
            if !undo { try plan.record?.write() }
            for step in plan.steps { try step.run() }
            if undo { try plan.record?.write() }
            Output.note(undo ? "Removed." : "Done.")
            Setup.show(plan.notes)
            guard tool == .git, !undo else { return }
            // A variable that comes later in the configuration takes precedence over what was written.
            Setup.show(try setup.standing(for: SetupTargets(in: try config.file().report())).notes)
        }
    }

    private static func notInstalled(_ setup: any ToolSetup) -> RingbackError {
        var error = RingbackError(
            "setup_failed", "\(setup.programs.joined(separator: ", ")): not installed. Nothing was changed.")
        error.advice = setup.adviceToInstall
        return error
    }

    private func plan(of setup: any ToolSetup) throws(RingbackError) -> SetupPlan {
        guard undo else { return try setup.change(for: try targets(), account: account) }
        return try setup.removal(for: account == nil ? nil : try targets(), account: account)
    }

    private func targets() throws(RingbackError) -> SetupTargets {
        let report = try config.file().report()
        guard let account else { return SetupTargets(in: report) }
        guard undo || ConfigurationCheck.account(account, in: report) != nil else {
            throw UnknownAccount.error(account, in: report)
        }
        return SetupTargets(in: report).of(account)
    }

    private static func show(_ notes: [String]) {
        for note in notes { Output.note(Sanitizer.line(note, limit: 1_000)) }
    }

    private func command(_ tool: ToolName) -> [String] {
        ["ringback", "setup", tool.rawValue] + (account.map { ["--account", $0] } ?? []) + (undo ? ["--undo"] : [])
            + (config.path.map { ["--config", $0] } ?? [])
    }

    private func list() throws(RingbackError) {
        let targets = try targets()
        var (table, notes, tools) = (Table(columns: ["TOOL", "STATE", "SERVERS"]), [String](), [JSON]())
        for tool in ToolName.allCases {
            let standing: ToolStanding
            do throws(RingbackError) {
                standing = try tool.standing(for: targets)
            } catch {
                standing = .unreadable("\(tool.rawValue): \(error.detail)")
            }
            table.add([tool.rawValue, standing.state.rawValue, standing.servers.joined(separator: " ")])
            notes += standing.notes
            tools.append([
                "tool": .string(tool.rawValue), "state": .string(standing.state.rawValue),
                "servers": .array(standing.servers.map { .string($0) }),
                "notes": .array(standing.notes.map { .string($0) }),
            ])
        }
        guard !json.isWanted else { return Output.json(["tools": .array(tools)]) }
        Output.table(table)
        Setup.show(notes)
    }
}

/// The question before the configuration of a tool is changed.
enum SetupQuestion {
    /// - Parameter command: what was called, without `--yes`.
    /// - Throws: `cancelled` if the user does not confirm it, or cannot because there is no terminal.
    static func ask(_ command: [String], isRemoval: Bool) throws(RingbackError) {
        guard Console.Stream.input.isTerminal, Console.Stream.errors.isTerminal else {
            throw RingbackError(
                .cancelled,
                "Without a terminal nothing is changed unless you confirm it: "
                    + "\(shown: ShownCommand(words: command + ["--yes"]))")
        }
        guard Prompt.confirm(isRemoval ? "Remove this?" : "Make this change?") else {
            throw RingbackError(.cancelled, "Nothing was changed.")
        }
    }
}

/// One change of a file or of a tool's configuration.
enum SetupStep {
    case link(path: String, target: String)
    case removeLink(path: String)
    case command([String])
    /// Replaces a file that had the former bytes, or was not there; the text says what of it changes.
    case replace(path: String, former: [UInt8]?, [UInt8], text: String)
    /// Removes a file that has these bytes, and the directories if nothing is in them, the innermost first.
    case removeFile(path: String, [UInt8], directories: [String])
    /// Gives the table of an origin these certificate authorities, and lets a running daemon read it.
    case allowAuthorities(OriginEntry, [String])

    /// The change, as it is shown before it is made.
    var text: String {
        switch self {
        case .link(let path, let target): SetupStep.line(["ln", "-s", target, path])
        case .removeLink(let path): SetupStep.line(["rm", path])
        case .command(let words): SetupStep.line(words)
        case .replace(_, _, _, let text): text
        case .removeFile(let path, _, _): SetupStep.line(["rm", path])
        case .allowAuthorities(let origin, let digests):
            "\(origin.source.text): \(origin.rule.pattern.text): ca_sha256 = \(SetupStep.array(digests))"
        }
    }

    /// Makes the change.
    func run() throws(RingbackError) {
        switch self {
        case .link(let path, let target):
            try HomeFile.makeDirectories(SetupStep.folder(of: path))
            guard unsafe symlink(target, path) == 0 else { throw HomeFile.failure("make", path) }
        case .removeLink(let path):
            // The question before may have taken long.
            guard Programs.isSelf(path), !HomeFile.isRegular(path) else {
                throw RingbackError("setup_failed", "\(path) is no link to this program any more. It was left.")
            }
            guard unsafe unlink(path) == 0 else { throw HomeFile.failure("remove", path) }
        case .command(let words):
            let (status, _) = try Programs.run(words)
            guard status == 0 else {
                throw RingbackError(
                    "setup_failed", "\(text) ended with status \(status). What comes before it was done.")
            }
        case .replace(let path, let former, let bytes, _): try SetupStep.write(bytes, to: path, former: former)
        case .removeFile(let path, let bytes, let directories):
            guard try HomeFile.contents(of: path) == bytes else { return }
            guard unsafe unlink(path) == 0 else { throw HomeFile.failure("remove", path) }
            for directory in directories where unsafe rmdir(directory) != 0 { break }
        case .allowAuthorities(let origin, let digests): try SetupStep.allow(digests, for: origin)
        }
    }

    private static func array(_ texts: [String]) -> String {
        texts.count == 1
            ? AccountText.quoted(texts[0]) : "[\(texts.map(AccountText.quoted).joined(separator: ", "))]"
    }

    private static func allow(_ digests: [String], for origin: OriginEntry) throws(RingbackError) {
        let file = try ConfigurationFile(stated: origin.source.file)
        var lines = ConfigurationLines(try file.text() ?? [])
        guard let line = origin.source.line,
            lines.set("ca_sha256", to: array(digests), inTable: OriginEntry.header, atLine: line)
        else {
            throw RingbackError(
                "origin_elsewhere",
                "The origin \(origin.rule.pattern.text) is in \(origin.source.text), in a form that this command does not "
                    + "change. Edit the file: ca_sha256 = \(array(digests))")
        }
        try file.replace(with: lines.text) { report in
            let changed = OriginEntry.all(in: report).first { $0.rule == origin.rule }
            return changed?.authorities == Set(digests)
        }
        try Daemon.calls(socket: nil).reloadIfRunning()
    }

    /// Replaces a file by renaming. A symbolic link stays, and its file is replaced.
    private static func write(_ bytes: [UInt8], to path: String, former: [UInt8]?) throws(RingbackError) {
        guard try HomeFile.contents(of: path) == former else {
            throw RingbackError("setup_failed", "\(path) was changed meanwhile. Nothing was changed. Run this again.")
        }
        guard former != nil else {
            guard !HomeFile.exists(path) else {
                throw RingbackError(
                    "place_taken", "\(path) is a link to a file that does not exist. Nothing was changed.")
            }
            try HomeFile.makeDirectories(folder(of: path))
            return try HomeFile.put(bytes, at: path, mode: 0o600)
        }
        var status = stat()
        guard unsafe stat(path, &status) == 0, let file = unsafe realpath(path, nil) else {
            throw HomeFile.failure("read", path)
        }
        defer { unsafe free(file) }
        try HomeFile.put(bytes, at: unsafe String(cString: file), mode: status.st_mode & 0o777)
    }

    static func folder(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    private static func line(_ words: [String]) -> String {
        ShownCommand(words: words).description
    }
}

/// The list of the entries that `ringback setup` added to docker's `config.json`, of the lines and elements that it added to
/// other files, and of the links that it made. `--undo` removes only these. The list is the file `setup` in
/// `$XDG_DATA_HOME/ringback`.
struct SetupRecord {
    private let path: String
    var entries = SetupEntries()

    /// - Throws: `setup_failed` if the file is not such a list; `no_place` without a home.
    init() throws(RingbackError) {
        func stated(_ name: String) -> String? { SocketPlace.variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        guard let data = stated("XDG_DATA_HOME") ?? stated("HOME").map({ $0 + "/.local/share" }) else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        path = data + "/ringback/setup"
        guard let bytes = try HomeFile.contents(of: path) else { return }
        guard let entries = SetupEntries(reading: bytes) else {
            throw RingbackError(
                "setup_failed", "\(path) is not a list of ringback setup. Nothing was changed. Move it away.")
        }
        self.entries = entries
    }

    func write() throws(RingbackError) {
        try HomeFile.makeDirectories(SetupStep.folder(of: path))
        try HomeFile.put(entries.bytes, at: path, mode: 0o600)
    }
}
