import ArgumentParser
import RingbackClient
import StrictJSON
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
            if !onlyPrints, let home = SocketPlace.variable("HOME") { try InstallPlaces.refuseForeign(home) }
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
