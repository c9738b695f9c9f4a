import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct VaultHosts: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hosts", abstract: "List the hosts that share the vault.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.listVaultHosts)
            guard !json.isWanted else { return Output.json(answer) }
            var table = Table(columns: ["NAME", "KEY", "JOINED", "SEEN"])
            for host in answer["hosts"]?.array ?? [] { table.add(VaultHosts.cells(host)) }
            Output.table(table)
            for name in answer["stale"]?.array?.compactMap(\.string) ?? [] {
                Output.note(
                    "\(Sanitizer.line(name)) was not refreshed since a host was removed: what that host had read may still "
                        + "be good. It is tried again by itself.")
            }
            VaultHosts.showLeft(answer)
        }
    }

    /// Sessions that only another host can refresh.
    static func showLeft(_ answer: JSON) {
        for name in answer["left"]?.array?.compactMap(\.string) ?? [] {
            Output.note(
                "\(Sanitizer.line(name)) is not configured here: its session is refreshed by a host that has it.")
        }
    }

    private static func cells(_ host: JSON) -> [String] {
        // One that is only invited has no name yet. It is removed by its role.
        let name = host["name"]?.string ?? "\(host["role"]?.string ?? "") (invited)"
        return [
            name + (host["self"]?.bool == true ? " (this one)" : ""), host["has_key"]?.bool == true ? "yes" : "no",
            time(host["joined_at"]), time(host["seen_at"]),
        ]
    }

    private static func time(_ seconds: JSON?) -> String { seconds?.integer.map(TimeText.dateAndTime) ?? "" }
}
