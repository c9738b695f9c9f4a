import ArgumentParser
import RingbackBase
import RingbackClient
import Terminal

struct Verify: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Finish a sign-in that waits for a code, started here or elsewhere.",
        discussion: """
            The code is asked for on the terminal, without echo, until it is right; otherwise it is a line of standard \
            input, or of the named descriptor. It is never an argument.
            """)

    @Argument(help: .flow, completion: Completions.accounts) var name: String
    @Option(help: .descriptor("the code")) var codeFD: Int32?
    @Option(help: .descriptor("the token hash of a mail's link, instead of a code,")) var tokenHashFD: Int32?
    @OptionGroup var options: CallOptions

    func validate() throws {
        try require(codeFD == nil || tokenHashFD == nil, "--code-fd and --token-hash-fd exclude each other.")
        try SignInOptions.check([codeFD, tokenHashFD])
    }

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        let flow = try FlowChoice.find(name, calls)
        let ended = try redeem(flow, calls)
        if let failure = ended.failure { throw failure }
        let account = try calls.account(flow.account)
        guard !json.isWanted else { return Output.json(account) }
        guard ended.status != .pending else {
            Output.line("Confirmed in part: \(Sanitizer.line(flow.account))")
            return CodeEntry.show(ended)
        }
        ended.showResult(account)
    }

    private func redeem(_ flow: Flow, _ calls: BrokerCalls) throws(RingbackError) -> Flow {
        guard flow.status == .pending else { return flow }
        if let tokenHashFD {
            let hash = try SecretInput.read("token hash", from: tokenHashFD)
            return try calls.verify(flow: flow.id, ["token_hash": hash]).0
        }
        let entry = CodeEntry(calls: calls, descriptor: codeFD)
        if SecretInput.asksUser(codeFD) { return try entry.finish(flow) }
        let resend = "For another one, run: \(shown: "ringback resend \(flow.account)")"
        var known = try entry.verify(flow, try SecretInput.read("code", from: codeFD), advice: resend)
        // A change may need two codes. If only one was given, the verb can be run again.
        while known.status == .pending, let code = try SecretInput.readOptional("code", from: codeFD) {
            known = try entry.verify(flow, code, advice: resend)
        }
        return known
    }
}
