import ArgumentParser
import CLinux
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
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

struct Complete: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Finish a pending sign-in with a pasted callback URL.",
        discussion: "Without an argument the URL is read from standard input; on a terminal it is not shown.")

    @Argument(help: "The callback URL, from the browser's address bar.")
    var url: String?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if let url, let mistake = Callback.mistake(Callback.trimmed(url)) { throw ValidationError(mistake) }
    }

    func run() throws {
        if let url { Open.hideArgument(url) }
        let isTerminal = Console.Stream.input.isTerminal
        var text = ""
        try present { () throws(RingbackError) in text = try read(isTerminal) }
        let callback = Callback.trimmed(text)
        if callback.isEmpty, url == nil, !isTerminal {
            Output.note(
                "ringback: There is no callback URL on standard input. Give it there, or as an argument: "
                    + "ringback complete 'URL'")
            throw ExitCode(ExitStatus.usage)
        }
        // The URL was not an argument, so the verb's usage would not help.
        if let mistake = Callback.mistake(callback) {
            Output.note("ringback: \(mistake)")
            throw ExitCode(ExitStatus.usage)
        }
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            if isTerminal {
                let accounts = try Callback.accounts(awaiting: callback, calls).map { Sanitizer.line($0) }
                // If no sign-in waits there, the daemon's error says more than a question would.
                if !accounts.isEmpty {
                    let names = accounts.joined(separator: " or ")
                    guard Prompt.confirm("Finish the sign-in to \(names) with this URL?") else {
                        throw RingbackError(.cancelled, "Nothing was sent; the sign-in to \(names) is still pending.")
                    }
                }
            }
            try Callback.deliver(callback, calls, isJSON: json.isWanted)
        }
    }

    private func read(_ isTerminal: Bool) throws(RingbackError) -> String {
        if let url { return url }
        guard isTerminal else { return readLine(strippingNewline: true) ?? "" }
        let line = Prompt.readHidden(
            "Paste the callback URL (it is not shown), then Enter: ", limit: Callback.maxLength,
            interruption: try Signals.interruption().descriptor)
        guard let line else { throw RingbackError(.cancelled, "No URL was read.") }
        return line
    }
}

struct Cancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Cancel a pending sign-in, for all callers that wait for it.",
        discussion: "The account's current session stays. To end it: ringback logout ACCOUNT")

    @Argument(
        help: ArgumentHelp("The account, or the flow's identifier.", valueName: "account"),
        completion: Completions.accounts)
    var name: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            let pending = try calls.flows().filter { $0.status == .pending && ($0.id == name || $0.account == name) }
            guard !pending.isEmpty else {
                throw RingbackError(.flowNotFound, "No sign-in of \(Sanitizer.line(name)) is pending.")
            }
            // An account may have a sign-in and a change of its user pending at once.
            for flow in pending {
                let answer = try calls.call(.cancelFlow, [flow.id], query: [("all", "true")])
                if json.isWanted {
                    Output.json(answer)
                } else {
                    Output.line("Cancelled: the pending sign-in to \(Sanitizer.line(flow.account))")
                }
            }
        }
    }
}

struct Open: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pass a callback URL to the daemon: the handler of custom schemes.",
        discussion: """
            ringback scheme register makes the desktop run this. A daemon that does not run is started by its socket \
            unit. A notification shows the result; if there is none, standard error does.
            """)

    @Argument(help: "The callback URL.")
    var url: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if let mistake = Callback.mistake(url) { throw ValidationError(mistake) }
    }

    func run() throws {
        Open.hideArgument(url)
        let url = Callback.escaped(url)
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            do throws(RingbackError) {
                try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
            } catch {
                guard daemon.socket == nil, DaemonStart.helps(error) else { throw error }
                try DaemonStart.start()
                try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
            }
        }
    }

    /// Every user of the machine can read a program's arguments while it runs, and this one waits for the provider. So
    /// the code is removed from the arguments before it is sent to the daemon.
    static func hideArgument(_ url: String) {
        for (index, argument) in CommandLine.arguments.enumerated() where argument == url {
            clinux_forget_argument(Int32(index))
        }
    }
}

/// Starts a daemon that does not run, as a first connection to its socket would.
enum DaemonStart {
    /// systemd's own limit for a unit is longer. A user waits this long.
    private static let bound: Duration = .seconds(10)
    private static let command = ["systemctl", "--user", "start", "ringback.socket"]

    /// True if no daemon responds at a known socket.
    static func helps(_ error: RingbackError) -> Bool { error.kind == .noDaemon && error.recovery != .fixConfiguration }

    /// - Throws: `no_daemon`, with what to do.
    static func start() throws(RingbackError) {
        guard let answer = Tool.run(command, within: bound) else {
            throw RingbackError(
                .noDaemon, "No daemon answers, and there is no systemctl to start it with. Run: ringbackd",
                recovery: .fixConfiguration)
        }
        guard answer.status == 0 else {
            throw RingbackError(
                .noDaemon,
                "No daemon answers, and its socket unit cannot be started. Look: systemctl --user status ringback.socket",
                recovery: .fixConfiguration)
        }
    }
}
