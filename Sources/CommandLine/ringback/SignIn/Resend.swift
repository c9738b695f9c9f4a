import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct Resend: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send the message of a pending sign-in again.",
        discussion: "Not more often than the project allows; exit status 5 says that it is too early.")

    @Argument(
        help: ArgumentHelp("The account, or the flow's identifier.", valueName: "account"),
        completion: Completions.accounts)
    var name: String

    @Option(name: .customLong("captcha-token-fd"), help: SignInOptions.descriptor("the proof of a CAPTCHA"))
    var captchaDescriptor: Int32?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws { try SignInOptions.check([captchaDescriptor]) }

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = captchaDescriptor == nil ? nil : try Signals.interruption()
            let calls = try daemon.calls(interruption)
            let found = try FlowChoice.find(name, calls).id
            var captcha: String?
            if let captchaDescriptor, let interruption {
                captcha = try SecretInput(interruption: interruption).read("CAPTCHA token", from: captchaDescriptor)
            }
            let (flow, document) = try calls.resend(flow: found, captcha: captcha)
            if json.isWanted { Output.json(document) } else { Output.line(CodeEntry.sent(flow)) }
        }
    }
}
