import ArgumentParser
import RingbackClient

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let the daemon read its configuration again.",
        discussion: "A bad one changes nothing: its mistakes are listed, and the exit status is 78.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call("POST", "/v1/reload")
            if json.isWanted { Output.json(answer) } else { Output.line("The configuration was read again.") }
        }
    }
}
