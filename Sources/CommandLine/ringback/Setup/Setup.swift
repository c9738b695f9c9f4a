import Adapters
import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

extension ToolName: ExpressibleByArgument {}

struct Setup: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup", abstract: "Make \(ToolName.list) ask Ringback for tokens.",
        discussion: """
            Without a tool it lists for which servers each tool asks Ringback. The [[origin]] tables of the configuration \
            say for which servers a tool is set up (ringback origin add URL --account ACCOUNT). The change is shown, and \
            made after a question. --undo removes what this command wrote, as far as it is unchanged; without a tool, that \
            of every tool, of "ringback mcp add-to" and of "ringback scheme register".
            """)

    @Argument(help: "\(ToolName.list).") var tool: ToolName?

    @Option(
        help:
            "Only the origins of this account. For kubectl: always this account's token, whatever the server.",
        completion: Completions.accounts)
    var account: String?

    @OptionGroup var change: ChangeOptions
    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption

    func validate() throws {
        let needsTool = account != nil || !change.undo && (change.onlyPrints || change.yes)
        try require(tool != nil || !needsTool, "Name the tool: \(ToolName.list).")
        try require(tool == nil && !change.undo || !json.isWanted, "--json is for the list of the tools.")
    }

    func run() throws {
        guard let tool else { return change.undo ? try undoAll() : try list() }
        let setup = try tool.setup()
        // What was written stays to be removed after the tool itself was.
        guard setup.isInstalled || (change.undo && !setup.needsProgramToUndo) else {
            let programs = setup.programs.joined(separator: ", ")
            throw RingbackError("setup_failed", "\(programs): not installed. Nothing was changed.")
        }
        try change.checkHome()
        let plan = try plan(of: setup)
        let isDone = try plan.carryOut(change, command(tool))
        plan.showNotes()
        guard isDone, tool == .git, !change.undo else { return }
        // A variable that comes later in the configuration takes precedence over what was written.
        SetupPlan(notes: try setup.standing(for: OriginEntry.all(in: try config.file().report())).notes).showNotes()
    }

    private func plan(of setup: any ToolSetup) throws(RingbackError) -> SetupPlan {
        guard change.undo else { return try setup.change(for: origins(), account: account) }
        return try setup.removal(for: account == nil ? nil : origins(), account: account)
    }

    /// Something that was written and can be removed.
    private enum Written {
        case tool(any ToolSetup)
        case server(AIToolFile, AIToolFile.Server)
        case schemes(SchemeRegistry)

        static func all() throws(RingbackError) -> [Written] {
            var all: [Written] = []
            for tool in ToolName.allCases {
                let setup = try tool.setup()
                if setup.isInstalled || !setup.needsProgramToUndo { all.append(.tool(setup)) }
            }
            for tool in AITool.allCases {
                let file = try AIToolFile(tool)
                let servers = (try? file.servers(try Files.contents(of: file.path))) ?? []
                all += servers.map { .server(file, $0) }
            }
            return all + [.schemes(try SchemeDesktop().registry)]
        }

        func removal() throws(RingbackError) -> SetupPlan {
            switch self {
            case .tool(let setup): return try setup.removal(for: nil, account: nil)
            case .server(let file, let server): return try file.removal(of: server)
            case .schemes(let registry):
                return SetupPlan(steps: registry.registered.map { .unregister(registry, $0.scheme) })
            }
        }
    }

    private func undoAll() throws(RingbackError) {
        try change.checkHome()
        var (all, usable) = (SetupPlan(), [Written]())
        for written in try Written.all() {
            // A tool whose configuration cannot be read does not keep the others.
            do throws(RingbackError) {
                let removal = try written.removal()
                all.steps += removal.steps
                all.notes += removal.notes
                usable.append(written)
            } catch {
                all.notes.append(error.detail)
            }
        }
        all.showNotes()
        var shown = change
        shown.onlyPrints = true
        _ = try all.carryOut(shown, [])
        guard !all.steps.isEmpty, !change.onlyPrints else { return }
        if !change.yes { try SetupPlan.confirm(change, ["ringback", "setup", "--undo"]) }
        // Each is made anew: two servers may stand in one file.
        var failure: RingbackError?
        for written in usable {
            do throws(RingbackError) {
                try written.removal().perform(change)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        Output.note("Removed.")
    }

    private func origins() throws(RingbackError) -> [OriginEntry] {
        let report = try config.file().report()
        guard let account else { return OriginEntry.all(in: report) }
        guard change.undo || ConfigurationCheck.account(account, in: report) != nil else {
            throw UnknownAccount.error(account, in: report)
        }
        return OriginEntry.all(in: report).filter { $0.account == account }
    }

    private func command(_ tool: ToolName) -> [String] {
        ["ringback", "setup", tool.rawValue] + (account.map { ["--account", $0] } ?? [])
            + (change.undo ? ["--undo"] : []) + config.words
    }

    private func list() throws(RingbackError) {
        let origins = try origins()
        let tools = ToolName.allCases.map { tool in (tool.rawValue, tool.readableStanding(for: origins)) }
        guard !json.isWanted else {
            let documents = tools.map { tool, standing -> JSONObject in
                ["tool": tool, "state": standing.state.rawValue, "servers": standing.servers, "notes": standing.notes]
            }
            return Output.object(["tools": documents])
        }
        Output.table(
            ["TOOL", "STATE", "SERVERS"], tools.map { [$0, $1.state.rawValue, $1.servers.joined(separator: " ")] })
        SetupPlan(notes: tools.flatMap(\.1.notes)).showNotes()
    }
}

enum SetupStep {
    case link(path: String, target: String)
    case removeLink(path: String)
    case command([String])
    /// Replaces a file that had the former bytes, or was not there; the text says what of it changes.
    case replace(path: String, former: [UInt8]?, [UInt8], text: String)
    /// Removes a file that has these bytes, and the directories if nothing is in them, the innermost first.
    case removeFile(path: String, [UInt8], directories: [String])
    /// Gives a scheme's links back to its former handler.
    case unregister(SchemeRegistry, URLScheme)
    /// Gives the table of an origin these certificate authorities, and lets a running daemon read it.
    case allowAuthorities(OriginEntry, [String])

    var text: String {
        switch self {
        case .link(let path, let target): ShownCommand(words: ["ln", "-s", target, path]).description
        case .removeLink(let path), .removeFile(let path, _, _): ShownCommand(words: ["rm", path]).description
        case .command(let words): ShownCommand(words: words).description
        case .replace(_, _, _, let text): text
        case .unregister(_, let scheme):
            ShownCommand(words: ["ringback", "scheme", "unregister", scheme.name]).description
        case .allowAuthorities(let origin, let digests):
            "\(origin.source.text): \(origin.rule.pattern.text): ca_sha256 = \(AccountText.oneOrMore(digests) ?? "")"
        }
    }

    func run() throws(RingbackError) {
        switch self {
        case .link(let path, let target):
            try Files.makeDirectories(Files.folder(of: path))
            guard unsafe symlink(target, path) == 0 else { throw Files.failure("make", path) }
        case .removeLink(let path):
            // The question before may have taken long.
            guard Programs.isSelf(path), !Files.isRegular(path) else {
                throw RingbackError("setup_failed", "\(path) is no link to this program any more. It was left.")
            }
            guard unsafe unlink(path) == 0 else { throw Files.failure("remove", path) }
        case .command(let words):
            let status = try Programs.run(words).status
            guard status == 0 else {
                throw RingbackError(
                    "setup_failed", "\(text) ended with status \(status). What comes before it was done.")
            }
        case .replace(let path, let former, let bytes, _): try SetupStep.write(bytes, to: path, former: former)
        case .removeFile(let path, let bytes, let directories):
            guard try Files.contents(of: path) == bytes else { return }
            guard unsafe unlink(path) == 0 else { throw Files.failure("remove", path) }
            for directory in directories where unsafe rmdir(directory) != 0 { break }
        case .unregister(let registry, let scheme): _ = try SchemeDesktop.changed(try registry.unregister(scheme))
        case .allowAuthorities(let origin, let digests): try SetupStep.allow(digests, for: origin)
        }
    }

    private static func allow(_ digests: [String], for origin: OriginEntry) throws(RingbackError) {
        let file = try ConfigurationFile(stated: origin.source.file)
        var lines = ConfigurationLines(try file.text() ?? [])
        let value = AccountText.oneOrMore(digests) ?? ""
        guard let line = origin.source.line,
            lines.set("ca_sha256", to: value, inTable: OriginEntry.header, atLine: line)
        else {
            throw RingbackError(
                "origin_elsewhere",
                "The origin \(origin.rule.pattern.text) is in \(origin.source.text), in a form that this command does not "
                    + "change. Edit the file: ca_sha256 = \(value)")
        }
        try file.replace(with: lines.text) { report in
            OriginEntry.all(in: report).first { $0.rule == origin.rule }?.authorities == Set(digests)
        }
        try Daemon.calls(socket: nil).reloadIfRunning()
    }

    /// A symbolic link stays, and its file is replaced.
    private static func write(_ bytes: [UInt8], to path: String, former: [UInt8]?) throws(RingbackError) {
        guard try Files.contents(of: path) == former else {
            throw RingbackError("setup_failed", "\(path) was changed meanwhile. Nothing was changed. Run this again.")
        }
        guard former != nil else {
            guard !Files.exists(path) else {
                throw RingbackError(
                    "place_taken", "\(path) is a link to a file that does not exist. Nothing was changed.")
            }
            try Files.makeDirectories(Files.folder(of: path))
            return try Files.put(bytes, at: path, mode: 0o600)
        }
        let file = try Files.resolved(path)
        try Files.put(bytes, at: file.path, mode: file.mode)
    }
}

/// What `ringback setup` added to tools' files, and the links that it made. `--undo` removes only these. The list is
/// the file `setup` in `$XDG_DATA_HOME/ringback`.
struct SetupRecord {
    private let path: String
    var entries = SetupEntries()

    init() throws(RingbackError) {
        let data = if let stated = Files.place("XDG_DATA_HOME") { stated } else { try Files.home() + "/.local/share" }
        path = data + "/ringback/setup"
        guard let bytes = try Files.contents(of: path) else { return }
        guard let entries = SetupEntries(reading: bytes) else {
            throw RingbackError(
                "setup_failed", "\(path) is not a list of ringback setup. Nothing was changed. Move it away.")
        }
        self.entries = entries
    }

    func write() throws(RingbackError) {
        try Files.makeDirectories(Files.folder(of: path))
        try Files.put(entries.bytes, at: path, mode: 0o600)
    }
}

protocol ToolSetup {
    var programs: [String] { get }
    var isInstalled: Bool { get }
    /// True if the entries can only be removed by the tool's own command; false for files that are changed here.
    var needsProgramToUndo: Bool { get }

    /// The link that the tool looks for in `PATH`; nil for a tool that is told a path.
    var linkInPath: HelperLink? { get }

    func change(for origins: [OriginEntry], account: String?) throws(RingbackError) -> SetupPlan

    /// Removes what ``change(for:account:)`` made, as far as it is still there.
    func removal(for origins: [OriginEntry]?, account: String?) throws(RingbackError) -> SetupPlan

    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding
}

struct SetupPlan {
    var steps: [SetupStep] = []
    var notes: [String] = []
    /// The list of what was written, as it is after the change; nil if the tool needs none.
    var record: SetupRecord?

    func showNotes() {
        for note in notes { Output.note(Sanitizer.line(note, limit: 1_000)) }
    }

    /// Shows the steps, asks, and carries them out. False if nothing was changed.
    ///
    /// - Parameter command: what was called, without `--yes`.
    /// - Throws: `cancelled` if the user does not confirm it, or cannot because there is no terminal.
    func carryOut(_ options: ChangeOptions, _ command: [String], done: String = "Done.") throws(RingbackError) -> Bool {
        for step in steps { Output.line(Sanitizer.line(step.text, limit: 4_000)) }
        guard !steps.isEmpty else {
            Output.note(options.undo ? "There is nothing to remove." : "There is nothing to change.")
            return false
        }
        guard !options.onlyPrints else { return false }
        if !options.yes { try SetupPlan.confirm(options, command) }
        try perform(options)
        Output.note(options.undo ? "Removed." : done)
        return true
    }

    static func confirm(_ options: ChangeOptions, _ command: [String]) throws(RingbackError) {
        try Questions.confirm(
            options.undo ? "Remove this?" : "Make this change?", "changed",
            orBy: ShownCommand(words: command + ["--yes"]))
    }

    func perform(_ options: ChangeOptions) throws(RingbackError) {
        // The list is written first. If this is interrupted, an entry may be in the list alone, which does no harm. An
        // entry in the tool alone would never be removed.
        if !options.undo { try record?.write() }
        for step in steps { try step.run() }
        if options.undo { try record?.write() }
    }
}

struct ChangeOptions: ParsableArguments {
    @Flag(help: "Remove what this command wrote.") var undo = false
    @Flag(name: .customLong("print"), help: "Show the change and make none.") var onlyPrints = false
    @Flag(name: .shortAndLong, help: "Do not ask.") var yes = false

    func checkHome() throws(RingbackError) {
        if !onlyPrints { try Files.refuseForeignHome() }
    }
}

struct ToolStanding {
    enum State: String {
        case notInstalled = "not installed"
        case notSetUp = "not set up"
        case setUp = "set up"
        /// For some servers of the origins.
        case inPart = "set up in part"
        /// Another helper is asked, before Ringback or in its place.
        case otherAnswers = "something else answers"
        /// Its configuration cannot be read; the notes say why.
        case unreadable = "cannot be read"
    }

    var state: State
    var servers: [String] = []
    var notes: [String] = []
}

extension ToolStanding {
    /// - Parameters:
    ///   - missing: the number of things that are missing: servers, and links.
    ///   - hasOther: something else is asked.
    init(servers: [String], missing: Int, hasOther: Bool, notes: [String]) {
        let state: State = hasOther ? .otherAnswers : servers.isEmpty ? .notSetUp : missing == 0 ? .setUp : .inPart
        self.init(state: state, servers: servers, notes: notes)
    }
}

enum ToolName: String, CaseIterable {
    case git, kubectl, docker, go

    static let list = "git, kubectl, docker or go"

    func setup() throws(RingbackError) -> any ToolSetup {
        switch self {
        case .git: try GitSetup()
        case .kubectl: try KubectlSetup()
        case .docker: try DockerSetup()
        case .go: try GoSetup()
        }
    }

    func readableStanding(for origins: [OriginEntry]) -> ToolStanding {
        do throws(RingbackError) {
            let setup = try setup()
            return setup.isInstalled ? try setup.standing(for: origins) : ToolStanding(state: .notInstalled)
        } catch {
            return ToolStanding(state: .unreadable, notes: ["\(rawValue): \(error.detail)"])
        }
    }
}

extension ToolSetup {
    var linkInPath: HelperLink? { nil }
    var needsProgramToUndo: Bool { false }
    var isInstalled: Bool { programs.contains(where: Tool.isInstalled) }

    /// This program, as the configuration of a tool names it: a stable path without a version, if there is one.
    static func program() throws(RingbackError) -> String {
        let folders = SearchPath.own.folders.filter { $0.hasPrefix("/") }
        if let found = folders.map({ "\($0)/ringback" }).first(where: Programs.isSelf) { return found }
        guard let own = Programs.own, own.hasSuffix("/ringback") else {
            throw RingbackError(
                "setup_failed", "This program has no path that ends with /ringback, which a tool could run.")
        }
        return own
    }

    static func output(of words: [String], statuses: Set<Int32> = [0]) throws(RingbackError) -> [UInt8] {
        let answer = try Programs.run(words)
        guard statuses.contains(answer.status) else {
            let text = "\(words.joined(separator: " ")) ended with status \(answer.status). Nothing was changed."
            throw RingbackError("setup_failed", text)
        }
        return answer.output
    }

    static func noOrigin(of account: String?, _ needed: String) -> RingbackError {
        RingbackError(
            .notFound, "There is no origin\(account.map { " of \($0)" } ?? "") that \(needed). Nothing was changed.",
            advice: "Run: \(shown: "ringback origin add URL --account=\(account ?? "ACCOUNT")")")
    }
}
