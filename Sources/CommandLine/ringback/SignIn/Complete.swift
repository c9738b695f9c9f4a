import ArgumentParser
import RingbackClient
import Terminal

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
