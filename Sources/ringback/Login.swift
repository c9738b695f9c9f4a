import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct Login: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign in: open the browser, wait, say who is signed in.",
        discussion: "Ctrl-C withdraws. Exit status 4: denied or cancelled; 6: not finished in time.")

    @Argument(help: "The account.")
    var account: String

    @Flag(help: "Print the page's address on the first line instead of opening a browser.")
    var noBrowser = false

    @Option(help: "How to sign in; this version knows browser.")
    var method = "browser"

    @Option(
        name: .customLong("with"),
        help: ArgumentHelp(
            "The provider behind Supabase (not in this version).", valueName: "provider", visibility: .hidden))
    var upstream: String?

    @Flag(name: .customLong("switch"), help: "Allow another person than the one signed in now.")
    var switchSubject = false

    @Option(help: ArgumentHelp("Seconds until the sign-in is given up, 1 to 3600.", valueName: "seconds"))
    var timeout: Int?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard method == "browser" else {
            throw ValidationError(
                "--method \(Sanitizer.line(method)) is not in this version, which signs in by browser alone.")
        }
        if upstream != nil {
            throw ValidationError(
                "--with is not in this version: it chooses a provider behind Supabase. Leave it out.")
        }
        // The daemon's own bounds.
        if let timeout, !(1...3_600).contains(timeout) { throw ValidationError("--timeout is 1 to 3600 seconds.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let calls = try daemon.calls(try Signals.interruption())
            do throws(RingbackError) {
                let signedIn = try signIn.finish(calls)
                if json.isWanted { Output.json(signedIn) } else { Output.line(SignInRun.result(account, signedIn)) }
            } catch {
                guard error.kind == .accountNotFound else { throw error }
                throw explained(error, calls)
            }
        }
    }

    private var signIn: SignInRun {
        var run = SignInRun(account: account, opensBrowser: !noBrowser)
        run.fields = JSONObject([.init("method", .string(method))])
        if switchSubject { run.fields["switch_subject"] = true }
        run.timeout = timeout
        run.began = { [noBrowser, json] flow, document in
            if json.isWanted {
                Output.json(document)
            } else if noBrowser, let url = flow.authorizationURL {
                Output.line(Sanitizer.line(url, limit: 16_384))
            }
        }
        return run
    }

    /// An unknown name: the known ones, and how to add it.
    private func explained(_ error: RingbackError, _ calls: BrokerCalls) -> RingbackError {
        var error = error
        let list = try? calls.call("GET", "/v1/accounts")["accounts"]?.array?.compactMap { $0["name"]?.string }
        let names = (list ?? []).map { Sanitizer.line($0) }
        error.detail =
            "There is no account “\(Sanitizer.line(account))”. "
            + (names.isEmpty ? "None is configured." : "Known: \(names.joined(separator: ", ")).")
        if RequestTarget.isAccountName(account) {
            error.detail += " To add it: ringback account add \(account) --issuer URL --client-id ID"
        }
        return error
    }
}
