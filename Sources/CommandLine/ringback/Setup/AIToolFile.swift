import Adapters
import Glibc
import RingbackClient
import Terminal

/// An AI tool's configuration in the home directory, and its servers that are `ringback mcp ACCOUNT`.
struct AIToolFile {
    /// A server of ours. Its program may be one that is not there any more.
    struct Server {
        let name: String
        let program: String
        let account: String
    }

    let tool: AITool
    let path: String

    /// - Throws: `setup_failed` without a home.
    init(_ tool: AITool) throws(RingbackError) {
        self.tool = tool
        guard let home = SocketPlace.variable("HOME"), home.hasPrefix("/") else {
            throw RingbackError("setup_failed", "HOME is not set to an absolute path. Nothing was changed.")
        }
        func directory(_ variable: String) -> String? {
            SocketPlace.variable(variable).flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        let (place, isConfiguration) = tool.place
        let usual =
            if let folder = tool.variable.flatMap(directory) {
                folder + "/" + (place.split(separator: "/").last ?? "")
            } else if isConfiguration {
                "\(directory("XDG_CONFIG_HOME") ?? "\(home)/.config")/\(place)"
            } else {
                "\(home)/\(place)"
            }
        let other = tool.otherName.map { SetupStep.folder(of: usual) + "/" + $0 }
        path = other.flatMap { HomeFile.exists($0) && !HomeFile.exists(usual) ? $0 : nil } ?? usual
    }

    /// - Throws: `setup_failed` if the file cannot be changed.
    func list(_ bytes: [UInt8]?, _ member: String) throws(RingbackError) -> MCPServerList {
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

    /// The servers of ours in the file.
    func servers(_ bytes: [UInt8]?) throws(RingbackError) -> [Server] {
        let all: [(name: String, words: [String])]
        switch tool.form {
        case .json(let member):
            all = try list(bytes, member).entries.compactMap { entry in
                tool.words(of: entry.entry).map { (entry.name, $0) }
            }
        case .toml: all = CodexServerList(reading: bytes).servers
        }
        return all.compactMap { name, words in
            AITool.account(of: words).map { Server(name: name, program: words[0], account: $0) }
        }
    }

    /// The directories above the file that do not exist, the outermost first.
    var missingFolders: [String] {
        var (missing, folder) = ([String](), path[...])
        while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
            folder = folder[..<slash]
            guard !HomeFile.exists(String(folder)) else { break }
            missing.insert(String(folder), at: 0)
        }
        return missing
    }
}

/// The AI tools that start `ringback mcp`.
extension DoctorReport {
    /// Names the servers whose program is not there any more. A file that cannot be read is its tool's concern.
    ///
    /// - Parameter account: only servers of this account; nil for all.
    mutating func lookAtAITools(of account: String?) {
        for tool in AITool.allCases {
            guard let file = try? AIToolFile(tool), let bytes = try? HomeFile.contents(of: file.path),
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
