import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct ExposeList: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the restricted sockets.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call("GET", "/v1/grants")
            guard !json.isWanted else { return Output.json(answer) }
            let grants = answer["grants"]?.array ?? []
            let closed = answer["closed"]?.array ?? []
            defer { for entry in closed { Output.note(ExposeList.line(closed: entry)) } }
            guard !grants.isEmpty else {
                return Output.note("Nothing is exposed. Run: ringback expose NAME --account ACCOUNT")
            }
            var table = Table(columns: ["NAME", "ACCOUNTS", "SCOPE", "UIDS", "VALID", "MADE BY", "SOCKET"])
            for grant in grants { table.add(ExposeList.cells(grant)) }
            for (index, line) in table.lines.enumerated() {
                Output.line(index == 0 ? Style.bold.apply(line, on: .output) : line)
            }
        }
    }

    /// One that is not there, and why.
    private static func line(closed entry: JSON) -> String {
        Sanitizer.line("Not exposed: \(entry["name"]?.string ?? ""). \(entry["detail"]?.string ?? "")", limit: 4_000)
    }

    private static func cells(_ grant: JSON) -> [String] {
        let uids = (grant["allow_uids"]?.array ?? []).compactMap { $0.integer.map(String.init) }
        return [
            grant["name"]?.string ?? "", (grant["accounts"]?.array ?? []).compactMap(\.string).joined(separator: ","),
            grant["scope"]?.string ?? "any", uids.isEmpty ? "own" : "own," + uids.joined(separator: ","),
            TimeText.validity(until: grant["expires_at"]?.integer, now: TimeText.now()),
            grant["source"]?.string == "api" ? "expose" : grant["source"]?.string ?? "",
            grant["flatpak_socket"]?.string ?? grant["socket"]?.string ?? "",
        ]
    }
}
