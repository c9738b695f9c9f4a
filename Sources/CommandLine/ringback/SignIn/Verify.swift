import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct Verify: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Finish a sign-in that waits for a code, started here or elsewhere.",
        discussion: """
            The code is asked for on the terminal, without echo, until it is right; otherwise it is a line of standard \
            input, or of the named descriptor. It is never an argument.
            """)

    @Argument(
        help: ArgumentHelp("The account, or the flow's identifier.", valueName: "account"),
        completion: Completions.accounts)
    var name: String

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the code"))
    var codeDescriptor: Int32?

    @Option(
        name: .customLong("token-hash-fd"),
        help: SignInOptions.descriptor("the token hash of a mail's link, instead of a code,"))
    var hashDescriptor: Int32?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard codeDescriptor == nil || hashDescriptor == nil else {
            throw ValidationError("--code-fd and --token-hash-fd exclude each other.")
        }
        try SignInOptions.check([codeDescriptor, hashDescriptor])
    }

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            let flow = try FlowChoice.find(name, calls)
            let ended = try redeem(flow, calls, interruption)
            if let failure = ended.failure { throw failure }
            let account = try calls.account(flow.account)
            guard !json.isWanted else { return Output.json(account) }
            guard ended.status != .pending else {
                Output.line("Confirmed in part: \(Sanitizer.line(flow.account))")
                return CodeEntry.show(ended)
            }
            let isChange = flow.method == .userUpdate
            Output.line(isChange ? Verify.confirmed(flow.account, account) : SignInRun.result(flow.account, account))
            if let hint = Assurance.hint(flow.account, account) { Output.note(hint) }
            if flow.method == .recovery { Output.note(SupabaseResetPassword.later(flow.account)) }
        }
    }

    private func redeem(
        _ flow: Flow, _ calls: BrokerCalls, _ interruption: Interruption
    ) throws(RingbackError) -> Flow {
        // The flow has ended, so there is nothing to redeem.
        guard flow.status == .pending else { return flow }
        let input = SecretInput(interruption: interruption)
        if let hashDescriptor {
            let hash = try input.read("token hash", from: hashDescriptor)
            return try calls.verify(flow: flow.id, "token_hash", hash).0
        }
        if SecretInput.asksUser(codeDescriptor) {
            return try CodeEntry(calls, interruption, from: codeDescriptor).finish(flow)
        }
        let entry = CodeEntry(calls, interruption, from: codeDescriptor)
        let resend = " For another one, run: \(shown: "ringback resend \(flow.account)")"
        var known = try entry.verify(flow, try input.read("code", from: codeDescriptor), advice: resend)
        // A change may need two codes. If only one was given, the verb can be run again.
        while known.status == .pending, let code = try input.readOptional("code", from: codeDescriptor) {
            known = try entry.verify(flow, code, advice: resend)
        }
        return known
    }

    /// `Confirmed: ACCOUNT is EMAIL-or-number`
    static func confirmed(_ name: String, _ account: JSON) -> String {
        let user = User(reading: account["user"])
        return "Confirmed: \(Sanitizer.line(name)) is \(Sanitizer.line(user?.email ?? user?.phone ?? "as it was"))"
    }
}
