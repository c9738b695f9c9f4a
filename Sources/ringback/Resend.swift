import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct Resend: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send the message of a pending sign-in again.",
        discussion: "Not more often than the project allows; exit status 5 says that it is too early.")

    @Argument(help: ArgumentHelp("The account, or the flow's identifier.", valueName: "account"))
    var name: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            let (flow, document) = try calls.resend(flow: try FlowChoice.find(name, calls).id)
            if json.isWanted { Output.json(document) } else { Output.line(CodeEntry.sent(flow)) }
        }
    }
}
