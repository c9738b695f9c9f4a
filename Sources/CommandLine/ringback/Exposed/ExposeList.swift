import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct ExposeList: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the restricted sockets.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.listExposedSockets)
            guard !json.isWanted else { return Output.json(answer) }
            let sockets = answer["exposed_sockets"]?.array ?? []
            let closed = answer["closed"]?.array ?? []
            defer { for entry in closed { Output.note(ExposeList.line(closed: entry)) } }
            guard !sockets.isEmpty else {
                return Output.note("Nothing is exposed. Run: ringback expose NAME --account ACCOUNT")
            }
            var table = Table(columns: ["NAME", "ACCOUNTS", "SCOPE", "UIDS", "VALID", "MADE BY", "SOCKET"])
            for socket in sockets { table.add(ExposeList.cells(socket)) }
            Output.table(table)
        }
    }

    /// A socket that is closed, and why.
    private static func line(closed entry: JSON) -> String {
        let name = entry["name"]?.string ?? ""
        let step = step(entry, name).map { " \($0)" } ?? ""
        return Sanitizer.line("Not exposed: \(name). \(entry["detail"]?.string ?? "")\(step)", limit: 4_000)
    }

    /// What to type about it.
    private static func step(_ entry: JSON, _ name: String) -> String? {
        guard RequestTarget.isAccountName(name) else { return nil }
        switch entry["reason"]?.string {
        case "name_taken":
            return "To revoke that one: \(shown: "ringback expose revoke \(name)"), and then ringback reload"
        case "account_changed": return "To revoke it: \(shown: "ringback expose revoke \(name)")"
        default:
            return entry["path"]?.string.map {
                "Run: \(shown: PathRemedy.openToOthers.command(for: $0, user: geteuid()))"
            }
        }
    }

    /// Which tools of an MCP server a socket serves.
    static func tools(_ mcp: JSON) -> String {
        guard let tools = mcp["tools"]?.array?.compactMap(\.string) else { return "all tools" }
        return tools.isEmpty ? "no tools" : tools.joined(separator: ", ")
    }

    private static func cells(_ socket: JSON) -> [String] {
        let uids = (socket["allow_uids"]?.array ?? []).compactMap { $0.integer.map(String.init) }
        return [
            socket["name"]?.string ?? "", (socket["accounts"]?.array ?? []).compactMap(\.string).joined(separator: ","),
            socket["mcp"].map { "MCP: \(tools($0))" } ?? socket["scope"]?.string ?? "any",
            uids.isEmpty ? "own" : "own," + uids.joined(separator: ","),
            TimeText.validity(until: socket["expires_at"]?.integer, now: TimeText.now()),
            socket["source"]?.string == "api" ? "expose" : socket["source"]?.string ?? "",
            socket["flatpak_socket"]?.string ?? socket["socket"]?.string ?? "",
        ]
    }
}
