import ArgumentParser
import RingbackClient

struct Resend: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Send the message of a pending sign-in again.",
        discussion: "Not more often than the project allows; exit status 5 says that it is too early.")

    @Argument(help: .flow, completion: Completions.accounts) var name: String
    @Option(help: .descriptor("the proof of a CAPTCHA")) var captchaTokenFD: Int32?
    @OptionGroup var options: CallOptions

    func validate() throws { try SignInOptions.check([captchaTokenFD]) }

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        let found = try FlowChoice.find(name, calls).id
        let captcha = try SecretInput.readNamed("CAPTCHA token", from: captchaTokenFD)
        let (flow, document) = try calls.resend(flow: found, captcha: captcha)
        json.print(document, or: CodeEntry.sent(flow))
    }
}
