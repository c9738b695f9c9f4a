import ArgumentParser
import CLinux
import Glibc
import RingbackAPI
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

struct Complete: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Finish a pending sign-in with a pasted callback URL.",
        discussion: "Without an argument the URL is read from standard input; on a terminal it is not shown.")

    @Argument(help: "The callback URL, from the browser's address bar.") var url: String?
    @OptionGroup var options: CallOptions

    func validate() throws {
        if let url, let mistake = Callback.mistake(Callback.trimmed(url)) { throw ValidationError(mistake) }
    }

    func run() throws {
        if let url { Open.hideArgument(url) }
        let isTerminal = Console.Stream.input.isTerminal
        let callback = Callback.trimmed(try read(isTerminal))
        if callback.isEmpty, url == nil, !isTerminal {
            throw RingbackError(
                ExitStatus.usageKind,
                "There is no callback URL on standard input. Give it there, or as an argument: ringback complete 'URL'")
        }
        // The URL was not an argument, so the verb's usage would not help.
        if let mistake = Callback.mistake(callback) { throw RingbackError(ExitStatus.usageKind, mistake) }
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

    private func read(_ isTerminal: Bool) throws(RingbackError) -> String {
        if let url { return url }
        guard isTerminal else { return readLine(strippingNewline: true) ?? "" }
        let question = "Paste the callback URL (it is not shown), then Enter: "
        let signals = try Signals.interruption().descriptor
        if let line = Prompt.readHidden(question, limit: Callback.maxLength, interruption: signals) { return line }
        throw RingbackError(.cancelled, "No URL was read.")
    }
}

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

struct Open: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Pass a callback URL to the daemon: the handler of custom schemes.",
        discussion: """
            ringback scheme register makes the desktop run this. A daemon that does not run is started by its socket \
            unit. A notification shows the result; if there is none, standard error does.
            """)

    @Argument(help: "The callback URL.") var url: String
    @OptionGroup var options: CallOptions

    func validate() throws {
        if let mistake = Callback.mistake(url) { throw ValidationError(mistake) }
    }

    func run() throws {
        Open.hideArgument(url)
        let url = Callback.escaped(url)
        let calls = try daemon.calls()
        do throws(RingbackError) {
            try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
        } catch {
            guard daemon.socket == nil, error.kind == .noDaemon, error.recovery != .fixConfiguration else {
                throw error
            }
            try startDaemon()
            try Callback.deliver(url, calls, isJSON: json.isWanted, wantsNotice: true)
        }
    }

    /// Every user of the machine can read a program's arguments while it runs, and this one waits for the provider. So
    /// the code is removed from the arguments before it is sent to the daemon.
    static func hideArgument(_ url: String) {
        for (index, argument) in CommandLine.arguments.enumerated() where argument == url {
            clinux_forget_argument(Int32(index))
        }
    }

    /// As a first connection to the socket of a daemon that does not run would.
    private func startDaemon() throws(RingbackError) {
        // systemd's own limit for a unit is longer. A user waits this long.
        let answer = Tool.systemctl("start", "ringback.socket")
        guard answer?.status != 0 else { return }
        throw RingbackError(
            .noDaemon,
            answer == nil
                ? "No daemon answers, and there is no systemctl to start it with. Run: ringbackd"
                : "No daemon answers, and its socket unit cannot be started. Look: systemctl --user status ringback.socket",
            recovery: .fixConfiguration)
    }
}

/// A callback URL that was pasted or that came by a custom scheme. The daemon decides what it means.
enum Callback {
    /// The daemon's own limit for a callback URL, in bytes.
    static let maxLength = 16_384

    static func mistake(_ url: String) -> String? {
        if url.isEmpty { return "There is no URL. Copy it from the browser's address bar after the sign-in." }
        if url.utf8.count > maxLength { return "The URL is longer than \(maxLength) bytes." }
        if url.hasPrefix("-") { return "A URL does not begin with “-”." }
        if url.unicodeScalars.contains(where: { !$0.isVisible || $0 == " " }) {
            return "A URL has no spaces and no control characters."
        }
        return url.contains(":") ? nil : "A URL begins with a scheme, such as http:."
    }

    /// Escapes a link as RFC 3986 section 2 requires. Browsers and desktops pass on braces, bars and letters of every
    /// alphabet as a page has them.
    static func escaped(_ url: String) -> String {
        url.utf8.reduce(into: "") { text, byte in
            if byte < 0x7F, !"\"<>\\^`{|}".utf8.contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }

    /// - Parameter wantsNotice: the user looks at the desktop, where the daemon shows a notification. If it cannot, the
    ///   result is also printed on standard error, which desktops log.
    static func deliver(
        _ url: String, _ calls: BrokerCalls, isJSON: Bool, wantsNotice: Bool = false
    ) throws(RingbackError) {
        let body: JSONObject = ["url": url, "notify": wantsNotice ? true : nil]
        let answer = try calls.call(.deliverCallback, body: .object(body), timeout: .seconds(60))
        if isJSON { Output.json(answer) }
        guard let document = answer["flow"] else {
            let isKept = answer["deep_link"]?["heard"]?.bool == false
            let handed = isKept ? "No app listens now; the link is kept for one minute." : "Sent to the app."
            if !isJSON { Output.line(answer["diagnostic_link"] == nil ? handed : "ringback doctor has its link back.") }
            return
        }
        guard let flow = Flow(reading: document) else {
            if !isJSON { Output.line("The sign-in is finished.") }
            return
        }
        if let failure = flow.failure { throw SignInAdvice.elsewhere(failure, of: flow) }
        guard !isJSON || wantsNotice else { return }
        let account = try calls.account(flow.account)
        if !isJSON { flow.showResult(account) }
        let isTold = !wantsNotice || answer.isTrue("notified") || Console.Stream.output.isTerminal
        if !isTold { Output.note(flow.result(account)) }
    }

    /// The accounts whose pending sign-in waits for a callback at this URL without its query.
    static func accounts(awaiting url: String, _ calls: BrokerCalls) throws(RingbackError) -> [String] {
        let candidates = try calls.flows().filter { flow in
            flow.status == .pending && flow.redirectURI.map { place(of: $0) == place(of: url) } == true
        }
        // Several flows may have one redirect URI. The state tells them apart, if the authorization URL has one.
        let own = candidates.filter { flow in
            guard let state = state(in: url) else { return false }
            return flow.authorizationURL.flatMap { self.state(in: $0) } == state
        }
        return (own.isEmpty ? candidates : own).map(\.account)
    }

    private static func state(in url: String) -> Substring? {
        url.drop { $0 != "?" }.dropFirst().prefix { $0 != "#" }.split(separator: "&")
            .first { $0.hasPrefix("state=") }?.dropFirst("state=".count)
    }

    static func place(of url: String) -> Substring { url.prefix { $0 != "?" && $0 != "#" } }

    /// Without spaces and line ends, which copied text often has.
    static func trimmed(_ text: String) -> String {
        String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}

extension Flow {
    /// What has become of an account by a flow that has ended, or has gone one step on.
    func result(_ document: JSON) -> String {
        if status == .pending { return Sanitizer.line(userMessage ?? "Another confirmation is awaited.") }
        guard method == .userUpdate else { return SignInRun.result(account, document) }
        let user = User(reading: document["user"])
        return "Confirmed: \(Sanitizer.line(account)) is \(Sanitizer.line(user?.email ?? user?.phone ?? "as it was"))"
    }

    func showResult(_ document: JSON) {
        Output.line(result(document))
        if let hint = Assurance.hint(account, document) { Output.note(hint) }
        if method == .recovery { Output.note(SupabaseResetPassword.later(account)) }
    }
}
