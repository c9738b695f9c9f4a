import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct Login: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        abstract: "Sign in: open the browser, wait, and print who is signed in.",
        discussion: """
            If the account is signed in already, this says so and ends with status 0, unless --again, --switch, \
            --replace or an option of the sign-in itself (such as --method or --scopes) is given. Without ACCOUNT it is \
            the only account, else the default account (see ringback use), else the one that the user chooses.

            If there is neither a display nor BROWSER, and the provider supports it, the sign-in uses a code that is \
            entered on another device (--method device). With --no-browser the callback URL can be pasted here. Over \
            SSH the command that forwards the callback's port is shown.

            At a Supabase project the user can also sign in by password, by a code or a link in a message, and more: \
            see --method. Secrets are asked for on the terminal, without echo; otherwise each is a line of standard \
            input, or of the named descriptor, in the order in which --help names them. A secret is never an argument. \
            If no code can be read, this ends at once with status 4, and ringback verify finishes the sign-in; with \
            --wait it waits.

            For a passkey (--method passkey) the authenticator's options are printed first, as JSON on one line, for an \
            app or a web page; its response is read as JSON.

            Ctrl-C cancels. Exit status 4: denied or cancelled; 6: not finished in time.
            """)

    @Argument(help: "The account.", completion: Completions.accounts) var account: String?
    @Flag(help: "Sign in again although the account is signed in.") var again = false
    @Flag(help: "Print the page's URL on the first line instead of opening a browser.") var noBrowser = false
    @Flag(help: "Draw no QR code.") var noQr = false

    @Option(help: .value("port", "The port of the callback, such as a forwarded one; without it, any free port."))
    var callbackPort: Int?

    @OptionGroup var way: SignInOptions
    @Flag(name: .customLong("switch"), help: "Allow another user than the one signed in now.") var switchSubject = false
    @Flag(help: "Replace another pending sign-in of the account.") var replace = false
    @Option(help: .value("seconds", "Seconds until the sign-in expires, 1 to 3600.")) var timeout: Int?
    @OptionGroup var options: CallOptions

    func validate() throws {
        let method = way.method
        try require(
            !noBrowser || [.browser, .sso, .page].contains(method) || way.from != nil,
            "--no-browser does not belong to --method \(method.rawValue).")
        try require(
            callbackPort == nil || [.browser, .sso].contains(method),
            "--callback-port does not belong to --method \(method.rawValue).")
        try require((1...65_535).contains(callbackPort ?? 1), "--callback-port must be 1 to 65535.")
        // The daemon's own limits.
        try require((1...3_600).contains(timeout ?? 1), "--timeout must be 1 to 3600 seconds.")
    }

    mutating func run() throws {
        let calls = try daemon.interruptibleCalls()
        let choice = AccountChoice(verb: "login", calls: calls, needsUser: true, asksOnTerminal: true)
        var name = if let account { account } else { try choice.name() }
        var known = try? calls.account(name)
        if let upstream = known?["through"]?.string {
            Output.note("\(Sanitizer.line(name)) gets its tokens through the sign-in of \(Sanitizer.line(upstream)).")
            (name, known) = (upstream, try? calls.account(upstream))
        }
        account = name
        let hasMethod = way.method.isForEveryAccount || known?["provider"]?.string ?? "supabase" == "supabase"
        // Otherwise nothing is asked for: the daemon says which methods the account has.
        if hasMethod { try way.checkUser() }
        if let known, isHeld(known) { return showHeld(name, known) }
        do throws(RingbackError) {
            let fields = try hasMethod ? way.fields() : ["method": way.method.rawValue]
            let signedIn = try finish(signIn(name, known, fields), calls)
            json.print(signedIn, or: SignInRun.result(name, signedIn))
            showHints(name, signedIn)
            if !json.isWanted { SameUser.warn(name, signedIn) }
        } catch {
            guard error.kind == .accountNotFound else { throw error }
            throw explained(error, name, calls)
        }
    }

    /// True if the account holds a session that needs no new sign-in and nothing else was asked for.
    private func isHeld(_ document: JSON) -> Bool {
        guard !again, !switchSubject, !replace, way.isLeftOpen, document["grant"] == nil,
            let account = try? Account(reading: document), account.state.hasSession, !account.isStale,
            account.problem == nil, document["lost_scope"] == nil
        else { return false }
        // Nothing can renew a session with a notice. Shortly before its end callers get no token of it any more.
        guard document["notice"] != nil, let end = document["expires_at"]?.integer else { return true }
        // Seconds for which a token has to be valid for a caller that does not say.
        return end - TimeText.now() >= 60
    }

    private func showHeld(_ name: String, _ document: JSON) {
        guard !json.isWanted else {
            var object = document.object ?? JSONObject()
            object["already_signed_in"] = true
            return Output.json(.object(object))
        }
        Output.line("\(Sanitizer.line(name)): already signed in as \(SignInRun.who(document))")
        showHints(name, document)
        Output.note("To sign in again, run: \(shown: "ringback login \(name) --again")")
    }

    private func showHints(_ name: String, _ document: JSON) {
        guard !json.isWanted else { return }
        if let notice = document["notice"]?.string { Output.note(Sanitizer.line(notice)) }
        if let hint = Assurance.hint(name, document) { Output.note(hint) }
    }

    /// Runs the sign-in. Without a method and without a provider in the account's configuration, the user chooses on a
    /// page, if the user is at a terminal.
    private func finish(_ run: SignInRun, _ calls: BrokerCalls) throws(RingbackError) -> JSON {
        do throws(RingbackError) {
            return try run.finish(calls)
        } catch {
            guard error["field"]?.string == "oauth_provider", way.isLeftOpen,
                callbackPort == nil, Questions.arePossible
            else { throw error }
            Output.note("\(Sanitizer.line(run.account)) names no provider: choose how to sign in on the page.")
            var run = run
            run.fields["method"] = .string(SignInMethod.page.rawValue)
            run.mayChooseDevice = false
            return try run.finish(calls)
        }
    }

    private func signIn(_ account: String, _ known: JSON?, _ fields: JSONObject) -> SignInRun {
        var run = SignInRun(
            account: account, opensBrowser: !noBrowser, fields: fields, timeout: timeout,
            mayChooseDevice: way.isLeftOpen && !noBrowser && callbackPort == nil, showsQR: !noQr,
            codeFD: way.codeFD, credentialFD: way.credentialFD, waitsWithoutInput: way.wait, known: known,
            printsJSON: json.isWanted)
        if switchSubject { run.fields["switch_subject"] = true }
        if replace { run.fields["replace"] = true }
        if let callbackPort { run.fields["callback_port"] = .integer(callbackPort) }
        return run
    }

    private func explained(_ error: RingbackError, _ account: String, _ calls: BrokerCalls) -> RingbackError {
        let add = "To add it: \(shown: "ringback account add \(account) --issuer URL --client-id ID")"
        return error.with(
            detail: UnknownAccount.text(account, known: (try? calls.call(.listAccounts))?.names("accounts") ?? []),
            advice: RequestTarget.isAccountName(account) ? add : nil)
    }
}
