import ArgumentParser
import RingbackClient
import Terminal

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
