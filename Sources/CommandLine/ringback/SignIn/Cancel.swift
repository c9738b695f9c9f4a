import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct Cancel: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Cancel a pending sign-in, for all callers that wait for it.",
        discussion: "The account's current session stays. To end it: ringback logout ACCOUNT")

    @Argument(help: .flow, completion: Completions.accounts) var name: String
    @OptionGroup var options: CallOptions

    func run() throws {
        let calls = try daemon.calls()
        let pending = try calls.flows().filter { $0.status == .pending && ($0.id == name || $0.account == name) }
        guard !pending.isEmpty else {
            throw RingbackError(.flowNotFound, "No sign-in of \(Sanitizer.line(name)) is pending.")
        }
        // An account may have a sign-in and a change of its user pending at once.
        for flow in pending {
            let answer = try calls.call(.cancelFlow, [flow.id], query: [("all", "true")])
            json.print(answer, or: "Cancelled: the pending sign-in to \(Sanitizer.line(flow.account))")
        }
    }
}
