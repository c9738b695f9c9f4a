import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let the daemon read its configuration again.",
        discussion: "If it has mistakes, nothing changes: they are listed, and the exit status is 78.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.reload)
            guard !json.isWanted else { return Output.json(answer) }
            Output.line("The configuration was read again.")
            let tables = (answer["restart_needed"]?.array ?? []).compactMap(\.string)
            if !tables.isEmpty {
                let names = tables.map { "[\(Sanitizer.line($0))]" }.joined(separator: ", ")
                Output.note("Changes in \(names) take effect when the daemon is started again.")
            }
        }
    }
}
