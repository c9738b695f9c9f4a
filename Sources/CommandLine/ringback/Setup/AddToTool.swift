import Adapters
import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient
import Terminal

struct AddToTool: AccountNaming {
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

    @Argument(help: "The account.", completion: Completions.accounts) var account: String
    @Option(help: "The server's name in the tool's list; without it that of the account.") var name: String?
    @OptionGroup var change: ChangeOptions

    func validate() throws {
        let isName =
            (1...64).contains(shown.utf8.count)
            && shown.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || ".-_".contains($0)) }
        try require(isName, "A name has letters, digits, \".\", \"-\" and \"_\" only.")
    }

    func run() throws {
        if !change.undo { try checkAccount() }
        try change.checkHome()
        let plan = try plan()
        plan.showNotes()
        let words =
            ["ringback", "mcp", "add-to", tool.rawValue, account] + (name.map { ["--name", $0] } ?? [])
            + (change.undo ? ["--undo"] : [])
        _ = try plan.carryOut(change, words, done: "Done. Start \(tool.rawValue) again.")
    }

    /// An account that the daemon does not know, or that has no MCP server, is refused.
    private func checkAccount() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try Daemon.calls(socket: nil).call(.getMCPServer, [account])
        } catch {
            guard error.kind != .accountNotFound, error.kind != .methodUnsupported else { throw error }
        }
    }

    private var shown: String { name ?? account }
    private var undo: Bool { change.undo }

    private func plan() throws(RingbackError) -> SetupPlan {
        let file = try AIToolFile(tool)
        let path = file.path
        let former = try Files.contents(of: path)
        let words = [try DockerSetup.program(), "mcp", account]
        let known = try file.servers(former).first { $0.name == shown }
        let isOurs = known?.account == account
        var plan = SetupPlan()
        var list = try file.list(former)
        guard isOurs || !list.has(shown) else {
            guard undo else {
                throw RingbackError(
                    "place_taken", "\(path) has another server called \(shown). Nothing was changed.",
                    advice: "Choose another name: --name NAME")
            }
            plan.notes.append("\(path) has another server called \(shown). It stays.")
            return plan
        }
        if undo { return try known.map { server throws(RingbackError) in try file.removal(of: server) } ?? plan }
        var what = "add"
        if let known {
            guard known.program != words[0] else { return plan }
            list.setProgram(of: shown, to: words[0])
            what = "in place of \(known.program), start"
        } else {
            list.add(shown, words, for: tool)
        }
        let text = "\(path): \(what) \(shown): \(shown: ShownCommand(words: words))"
        plan.steps = [.replace(path: path, former: former, list.bytes, text: text)]
        if former == nil {
            plan.notes.append(
                "\(path) does not exist yet. If \(tool.rawValue) has another configuration, add the entry there.")
            plan.record = try SetupRecord()
            plan.record?.entries.add(file: path, in: file.missingFolders)
        }
        return plan
    }
}

protocol ServerList {
    var bytes: [UInt8] { get }
    /// Nothing but the form of the file is left.
    var isEmpty: Bool { get }

    func has(_ name: String) -> Bool
    mutating func add(_ name: String, _ words: [String], for tool: AITool)
    mutating func setProgram(of name: String, to program: String)
    /// False if the entry is not as it was added.
    mutating func remove(_ name: String, _ words: [String]) -> Bool
}

extension MCPServerList: ServerList {
    func has(_ name: String) -> Bool { entry(name) != nil }

    mutating func add(_ name: String, _ words: [String], for tool: AITool) {
        add(name, tool.entry(words[0], Array(words.dropFirst())))
    }

    mutating func remove(_ name: String, _ words: [String]) -> Bool {
        remove(name)
        return true
    }
}

extension CodexServerList: ServerList {
    func has(_ name: String) -> Bool { mentions(name) }

    mutating func add(_ name: String, _ words: [String], for tool: AITool) {
        add(name, words[0], Array(words.dropFirst()))
    }

    mutating func remove(_ name: String, _ words: [String]) -> Bool {
        let arguments = Array(words.dropFirst())
        guard has(name, words[0], arguments) else { return false }
        remove(name, words[0], arguments)
        return true
    }
}

struct AIToolFile {
    /// A server of ours. Its program may be one that is not there any more.
    struct Server {
        let name: String
        let program: String
        let account: String
    }

    let tool: AITool
    let path: String

    init(_ tool: AITool) throws(RingbackError) {
        self.tool = tool
        let home = try Files.home()
        let (place, isConfiguration) = tool.place
        let usual =
            if let folder = tool.variable.flatMap(Files.place) {
                folder + "/" + (place.split(separator: "/").last ?? "")
            } else if isConfiguration {
                "\(Files.place("XDG_CONFIG_HOME") ?? "\(home)/.config")/\(place)"
            } else {
                "\(home)/\(place)"
            }
        let other = tool.otherName.map { Files.folder(of: usual) + "/" + $0 }
        path = other.flatMap { Files.exists($0) && !Files.exists(usual) ? $0 : nil } ?? usual
    }

    func list(_ bytes: [UInt8]?) throws(RingbackError) -> any ServerList {
        switch tool.form {
        case .json(let member): try list(bytes, member)
        case .toml: CodexServerList(reading: bytes)
        }
    }

    private func list(_ bytes: [UInt8]?, _ member: String) throws(RingbackError) -> MCPServerList {
        do throws(MCPServerList.Failure) {
            return try MCPServerList(reading: bytes, member: member)
        } catch {
            let reason =
                switch error {
                case .notAnObject: "is not a JSON object without repeated members"
                case .listUnreadable: "has a member \(member) that is no object"
                }
            throw RingbackError("setup_failed", "\(path) \(reason). Nothing was changed.")
        }
    }

    func servers(_ bytes: [UInt8]?) throws(RingbackError) -> [Server] {
        let all: [(name: String, words: [String])] =
            switch tool.form {
            case .json(let member):
                try list(bytes, member).entries.compactMap { entry in
                    tool.words(of: entry.entry).map { (entry.name, $0) }
                }
            case .toml: CodexServerList(reading: bytes).servers
            }
        return all.compactMap { name, words in
            AITool.account(of: words).map { Server(name: name, program: words[0], account: $0) }
        }
    }

    /// What removes a server of ours, and the file if this program made it and it has nothing else.
    func removal(of server: Server) throws(RingbackError) -> SetupPlan {
        let former = try Files.contents(of: path)
        let words = [server.program, "mcp", server.account]
        var (plan, list) = (SetupPlan(), try list(former))
        guard list.remove(server.name, words) else {
            plan.notes.append("\(path) has a server called \(server.name) that was changed. It stays.")
            return plan
        }
        let text = "\(path): remove \(server.name): \(shown: ShownCommand(words: words))"
        plan.steps = [.replace(path: path, former: former, list.bytes, text: text)]
        guard list.isEmpty, Files.target(of: path) == nil else { return plan }
        var record = try SetupRecord()
        if let directories = record.entries.remove(file: path) {
            plan.steps.append(.removeFile(path: path, list.bytes, directories: directories))
            plan.record = record
        }
        return plan
    }

    /// The directories above the file that do not exist, the outermost first.
    var missingFolders: [String] {
        var (missing, folder) = ([String](), path[...])
        while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
            folder = folder[..<slash]
            guard !Files.exists(String(folder)) else { break }
            missing.insert(String(folder), at: 0)
        }
        return missing
    }
}

extension DoctorReport {
    /// Names the servers whose program is not there any more. A file that cannot be read is its tool's concern.
    mutating func lookAtAITools(of account: String?) {
        for tool in AITool.allCases {
            guard let file = try? AIToolFile(tool), let bytes = try? Files.contents(of: file.path),
                let servers = try? file.servers(bytes)
            else { continue }
            for server in servers where account == nil || server.account == account {
                guard unsafe access(server.program, X_OK) != 0 else { continue }
                let name: ShownCommand = server.name == server.account ? "" : "--name=\(server.name)"
                add(
                    "tool", .warning,
                    "\(tool.rawValue) cannot start its server \(Sanitizer.line(server.name, limit: 100)): \(file.path) names "
                        + "\(Sanitizer.line(server.program, limit: 1_000)), which is no program any more.",
                    command: ShownCommand("ringback mcp add-to \(tool.rawValue) \(server.account) \(name)"))
            }
        }
    }
}
