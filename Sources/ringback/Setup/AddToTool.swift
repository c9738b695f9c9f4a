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
            stay. The change is shown, and made after a question. --undo removes the entry, if it is unchanged.
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
            if !onlyPrints, let home = SocketPlace.variable("HOME") { try InstallPlaces.refuseForeign(home) }
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
            for step in plan.steps { try step.run() }
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

    private func path() throws(RingbackError) -> String {
        guard let home = SocketPlace.variable("HOME"), home.hasPrefix("/") else {
            throw RingbackError("setup_failed", "HOME is not set to an absolute path. Nothing was changed.")
        }
        let (path, isConfiguration) = tool.place
        guard isConfiguration else { return "\(home)/\(path)" }
        let folder =
            SocketPlace.variable("XDG_CONFIG_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(home)/.config"
        return "\(folder)/\(path)"
    }

    private func plan() throws(RingbackError) -> SetupPlan {
        let path = try path()
        let former = try HomeFile.contents(of: path)
        let words = [try DockerSetup.program(), "mcp", account]
        var plan = SetupPlan()
        if former == nil, !undo {
            plan.notes.append(
                "\(path) does not exist yet. If \(tool.rawValue) has another configuration, add the entry there.")
        }
        let changed =
            switch tool.form {
            case .json(let member): try changedList(former, member, at: path, words, &plan)
            case .toml: try changedTables(former, at: path, words, &plan)
            }
        guard let changed else { return plan }
        let text = "\(path): \(undo ? "remove" : "add") \(shown): \(shown: ShownCommand(words: words))"
        plan.steps = [.replace(path: path, former: former, changed, text: text)]
        return plan
    }

    /// The file after the change; nil if nothing changes.
    private func changedList(
        _ former: [UInt8]?, _ member: String, at path: String, _ words: [String], _ plan: inout SetupPlan
    ) throws(RingbackError) -> [UInt8]? {
        var list: MCPServerList
        do throws(MCPServerList.Failure) {
            list = try MCPServerList(reading: former, member: member)
        } catch {
            let reason =
                switch error {
                case .notAnObject: "is not a JSON object without repeated members"
                case .listUnreadable: "has a member \(member) that is no object"
                }
            throw RingbackError("setup_failed", "\(path) \(reason). Nothing was changed.")
        }
        let known = list.entry(shown)
        let isOurs = known.flatMap(tool.words).map {
            $0[0].hasSuffix("/ringback") && Array($0.dropFirst()) == ["mcp", account]
        }
        if undo {
            guard known != nil else { return nil }
            guard isOurs == true else {
                plan.notes.append("\(path) has another server called \(shown). It stays.")
                return nil
            }
            list.remove(shown)
            return list.bytes
        }
        guard known == nil else {
            if isOurs == true { return nil }
            throw taken(path)
        }
        list.add(shown, tool.entry(words[0], Array(words.dropFirst())))
        return list.bytes
    }

    private func changedTables(
        _ former: [UInt8]?, at path: String, _ words: [String], _ plan: inout SetupPlan
    ) throws(RingbackError) -> [UInt8]? {
        var list = CodexServerList(reading: former)
        let arguments = Array(words.dropFirst())
        let isOurs = list.has(shown, words[0], arguments)
        if undo {
            guard isOurs else {
                if list.mentions(shown) { plan.notes.append("\(path) has another server called \(shown). It stays.") }
                return nil
            }
            list.remove(shown, words[0], arguments)
            return list.bytes
        }
        if isOurs { return nil }
        guard !list.mentions(shown) else { throw taken(path) }
        list.add(shown, words[0], arguments)
        return list.bytes
    }

    private func taken(_ path: String) -> RingbackError {
        var error = RingbackError("place_taken", "\(path) has another server called \(shown). Nothing was changed.")
        error.advice = "Choose another name: --name NAME"
        return error
    }
}
