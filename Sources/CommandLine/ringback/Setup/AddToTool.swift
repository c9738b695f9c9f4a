import Adapters
import ArgumentParser
import RingbackAPI
import RingbackClient
import Terminal

/// Adds a server, `ringback mcp ACCOUNT`, to the configuration of an AI tool. The change is shown first.
struct AddToTool: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add-to", abstract: "Add an account's MCP server to an AI tool.",
        discussion: """
            Writes "ringback mcp ACCOUNT" into the tool's own list of MCP servers. Comments and everything else in the file \
            stay. The change is shown, and made after a question. An entry with another path of ringback gets the present one. \
            --undo removes the entry, if it is unchanged, and a file that this command made and that has nothing else.
            """)

    private static let list = AITool.allCases.map(\.rawValue).joined(separator: ", ")

    @Argument(
        help: "\(AddToTool.list).", completion: .list(AITool.allCases.map(\.rawValue)),
        transform: { word in
            guard let tool = AITool(rawValue: word) else {
                throw ValidationError("\(word) is none of the tools \(AddToTool.list).")
            }
            return tool
        })
    var tool: AITool

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(help: "The server's name in the tool's list; without it that of the account.")
    var name: String?

    @Flag(help: "Remove what this command wrote.")
    var undo = false

    @Flag(name: .customLong("print"), help: "Show the change and make none.")
    var onlyPrints = false

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func validate() throws {
        let isName =
            (1...64).contains(shown.utf8.count)
            && shown.utf8.allSatisfy { byte in
                AddToTool.isLetterOrDigit(byte) || ".-_".utf8.contains(byte)
            }
        guard isName else { throw ValidationError("A name has letters, digits, \".\", \"-\" and \"_\" only.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            if !undo { try checkAccount() }
            if !onlyPrints, let home = SocketPlace.variable("HOME") { try HomeFile.refuseForeign(home) }
            let plan = try plan()
            for step in plan.steps { Output.line(Sanitizer.line(step.text, limit: 4_000)) }
            for note in plan.notes { Output.note(Sanitizer.line(note, limit: 1_000)) }
            guard !plan.steps.isEmpty else {
                return Output.note(undo ? "There is nothing to remove." : "There is nothing to change.")
            }
            guard !onlyPrints else { return }
            let words =
                ["ringback", "mcp", "add-to", tool.rawValue, account]
                + (name.map { ["--name", $0] } ?? []) + (undo ? ["--undo"] : [])
            if !yes { try SetupQuestion.ask(words, isRemoval: undo) }
            // As for ringback setup: an entry in the list alone does no harm.
            if !undo { try plan.record?.write() }
            for step in plan.steps { try step.run() }
            if undo { try plan.record?.write() }
            Output.note(undo ? "Removed." : "Done. Start \(tool.rawValue) again.")
        }
    }

    /// An account that the daemon does not know, or that has no MCP server, is refused. Without a daemon it is not known.
    private func checkAccount() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try Daemon.calls(socket: nil).call(.getMCPServer, [account])
        } catch {
            guard error.kind != .accountNotFound, error.kind != .methodUnsupported else { throw error }
        }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    private var shown: String { name ?? account }

    private func plan() throws(RingbackError) -> SetupPlan {
        let file = try AIToolFile(tool)
        let path = file.path
        let former = try HomeFile.contents(of: path)
        let words = [try DockerSetup.program(), "mcp", account]
        let known = try file.servers(former).first { $0.name == shown }
        let isOurs = known?.account == account
        var plan = SetupPlan()
        var list = try ServerList(file, former)
        guard isOurs || !list.has(shown) else {
            guard undo else { throw taken(path) }
            plan.notes.append("\(path) has another server called \(shown). It stays.")
            return plan
        }
        var what = undo ? "remove" : "add"
        if undo {
            guard let known else { return plan }
            guard list.remove(shown, [known.program] + words.dropFirst()) else {
                plan.notes.append("\(path) has a server called \(shown) that was changed. It stays.")
                return plan
            }
        } else if let known {
            guard known.program != words[0] else { return plan }
            list.setProgram(of: shown, to: words[0])
            what = "in place of \(known.program), start"
        } else {
            list.add(shown, words, for: tool)
        }
        let removed = undo ? [known?.program ?? words[0]] + words.dropFirst() : words
        let text = "\(path): \(what) \(shown): \(shown: ShownCommand(words: removed))"
        guard former != nil || undo else {
            plan.notes.append(
                "\(path) does not exist yet. If \(tool.rawValue) has another configuration, add the entry there.")
            plan.record = try SetupRecord()
            plan.record?.entries.add(file: path, in: file.missingFolders)
            plan.steps = [.replace(path: path, former: nil, list.bytes, text: text)]
            return plan
        }
        plan.steps = [.replace(path: path, former: former, list.bytes, text: text)]
        if undo, list.isEmpty, !HomeFile.isLink(path) {
            var record = try SetupRecord()
            if let directories = record.entries.remove(file: path) {
                plan.steps.append(.removeFile(path: path, list.bytes, directories: directories))
                plan.record = record
            }
        }
        return plan
    }

    private func taken(_ path: String) -> RingbackError {
        var error = RingbackError("place_taken", "\(path) has another server called \(shown). Nothing was changed.")
        error.advice = "Choose another name: --name NAME"
        return error
    }
}

/// A list of MCP servers in one of the forms.
private enum ServerList {
    case json(MCPServerList)
    case toml(CodexServerList)

    init(_ file: AIToolFile, _ bytes: [UInt8]?) throws(RingbackError) {
        switch file.tool.form {
        case .json(let member): self = .json(try file.list(bytes, member))
        case .toml: self = .toml(CodexServerList(reading: bytes))
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .json(let list): list.bytes
        case .toml(let list): list.bytes
        }
    }

    /// Nothing but the form of the file is left.
    var isEmpty: Bool {
        switch self {
        case .json(let list): list.isEmpty
        case .toml(let list): list.isEmpty
        }
    }

    func has(_ name: String) -> Bool {
        switch self {
        case .json(let list): list.entry(name) != nil
        case .toml(let list): list.mentions(name)
        }
    }

    mutating func add(_ name: String, _ words: [String], for tool: AITool) {
        let arguments = Array(words.dropFirst())
        switch self {
        case .json(var list):
            list.add(name, tool.entry(words[0], arguments))
            self = .json(list)
        case .toml(var list):
            list.add(name, words[0], arguments)
            self = .toml(list)
        }
    }

    mutating func setProgram(of name: String, to program: String) {
        switch self {
        case .json(var list):
            list.setProgram(of: name, to: program)
            self = .json(list)
        case .toml(var list):
            list.setProgram(of: name, to: program)
            self = .toml(list)
        }
    }

    /// False if the entry is not as it was added.
    mutating func remove(_ name: String, _ words: [String]) -> Bool {
        switch self {
        case .json(var list):
            list.remove(name)
            self = .json(list)
        case .toml(var list):
            let arguments = Array(words.dropFirst())
            guard list.has(name, words[0], arguments) else { return false }
            list.remove(name, words[0], arguments)
            self = .toml(list)
        }
        return true
    }
}
