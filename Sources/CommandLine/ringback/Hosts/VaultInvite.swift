import ArgumentParser
import Encodings
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct VaultInvite: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Invite one more host to share the vault.",
        discussion: """
            Prints what the configuration of that host is to have, and the invitation's password, which is not shown again. \
            Whoever has it can join once, but gets nothing of any session before ringback vault share.
            """)

    @Option(help: ArgumentHelp("How long it can be accepted: a minute to seven days.", valueName: "span"))
    var lasting = "1h"

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard let seconds = TimeSpan.seconds(of: lasting), (60...604_800).contains(seconds) else {
            throw ValidationError("--lasting must be a span from 1m to 7d, such as 90s, 15m or 8h.")
        }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            let seconds = TimeSpan.seconds(of: lasting) ?? 0
            let answer = try daemon.calls().call(.inviteVaultHost, body: ["lasting": .integer(seconds)])
            guard !json.isWanted else { return Output.json(answer) }
            Output.line("For the configuration of the new host:")
            Output.line("")
            Output.line("[vault]")
            Output.line("store = \"\(text(answer, "store"))\"")
            Output.line("")
            let span = TimeText.span(answer["expires_in"]?.integer ?? seconds)
            Output.line("The invitation's password, for \(span): \(text(answer, "password"))")
            Output.note(
                "It is not shown again. When the daemon of that host was started anew, run there: ringback vault join")
        }
    }

    private func text(_ answer: JSON, _ member: String) -> String {
        Sanitizer.line(answer[member]?.string ?? "", limit: 4_000)
    }
}
