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

struct Logout: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(abstract: "Sign out: end the session here and at the provider.")

    enum Scope: String, ExpressibleByArgument, CaseIterable { case local, global, others }

    @Argument(help: "The account (or --all).", completion: Completions.accounts) var account: String?
    @Flag(help: "Every account that holds a session.") var all = false

    @Option(help: "Which of the user's sessions: local (this one), global (all), others (all but this one).")
    var scope: Scope = .local

    @Flag(help: "End the session in the browser too: open the provider's page for that.") var browser = false
    @Flag(help: "Print that page's URL instead of opening it.") var noBrowser = false
    @Flag(help: "Put the ID token into that URL, so that the page need not ask who signs out.") var hint = false
    @Flag(help: "Remove the account's sessions in the vault that belong to no configured account.") var sealed = false
    @OptionGroup var options: CallOptions

    func validate() throws {
        try require(!sealed || (!all && !wantsPage), "--sealed is for one account only.")
        try require((account == nil) == all, "Name an account, or say --all.")
        try require(!(all && wantsPage), "--browser and --no-browser are for one account.")
        try require(!hint || wantsPage, "--hint belongs to --browser or --no-browser.")
    }

    func run() throws {
        if let account, sealed || isSealedOnly(account) {
            return try SealedSession.remove(of: account, revokes: true, daemon.calls(), asJSON: json.isWanted)
        }
        var worst: Int32 = 0
        var documents: [JSON] = []
        let names = try names()
        for name in names {
            do throws(RingbackError) {
                let answer = try daemon.calls().call(
                    .signOut, [name],
                    query: [("scope", scope.rawValue), ("end_session", wantsPage ? (hint ? "true" : "plain") : nil)])
                documents.append(answer)
                if !json.isWanted {
                    switch scope {
                    case .others: Output.line("Ended every other session of \(name)")
                    case _ where answer["had_session"] == false: Output.note("\(name) was not signed in.")
                    default: Output.line("Signed out of \(name)")
                    }
                    if let text = Logout.leftover(answer, name) { Output.note(text) }
                }
                if wantsPage { showPage(answer) }
            } catch {
                // If the sign-out of one account fails, the others are signed out all the same.
                Failure(error: error, account: name).show()
                worst = ExitStatus.worse(worst, ExitStatus.of(error))
            }
        }
        if !json.isWanted {
            if names.isEmpty { Output.note("No account is signed in.") }
        } else if let document = all ? JSON.object(["accounts": documents]) : documents.first {
            Output.json(document)
        }
        try ExitStatus.end(with: worst)
    }

    /// What the provider has not revoked, and until when it is valid; nil if nothing is left.
    static func leftover(_ answer: JSON, _ name: String) -> String? {
        let cause: String
        switch answer["revocation"]?.string {
        case "not_offered": cause = "The provider of \(name) offers no revocation."
        case "refused":
            let reason =
                answer["revocation_error"]?["detail"]?.string.map { ": \(Sanitizer.line($0, limit: 600))" } ?? "."
            cause = "The provider of \(name) refused to revoke the session\(reason)"
        case "pending": cause = "The provider of \(name) has not revoked the session yet. Ringback will ask it again."
        default: return nil
        }
        guard let left = answer["still_valid"] else { return cause }
        let tokens = ["access", "refresh"].compactMap { kind -> String? in
            guard left["\(kind)_token"]?.bool == true else { return nil }
            let end = left["\(kind)_token_expires_at"]?.integer.map { "until \(TimeText.dateAndTime($0))" }
            return "the \(kind) token \(end ?? "until the provider ends it")"
        }
        return tokens.isEmpty ? cause : "\(cause) Still valid there: \(tokens.joined(separator: ", "))."
    }

    private var wantsPage: Bool { browser || noBrowser }

    /// True if the account is not configured any more and the vault holds a session of it. A restricted socket does not
    /// show such sessions.
    private func isSealedOnly(_ account: String) -> Bool {
        guard let calls = try? daemon.calls(), let status = try? calls.call(.getStatus),
            SealedSession.all(in: status).contains(where: { $0.account == account }),
            let accounts = try? calls.call(.listAccounts)
        else { return false }
        return !accounts.names("accounts").contains(account)
    }

    private func names() throws(RingbackError) -> [String] {
        if let account { return [account] }
        // An account that is not loaded may hold a session. The daemon says whether it can be read.
        return try daemon.calls().accounts().filter { $0.state.hasSession || $0.state == .loading }.map(\.name)
    }

    /// Shows or opens the provider's page that ends the user's session in the browser. The session has ended here,
    /// whatever happens to the page. Ringback does not wait for the browser to come back, and reads nothing of it.
    private func showPage(_ answer: JSON) {
        guard let url = answer["end_session_url"]?.string else {
            let reason = RingbackError(reading: answer["end_session_error"]).map { error in
                let text = error.detail.hasSuffix(".") ? String(error.detail.dropLast()) : error.detail
                return "could not be asked for the page: \(Sanitizer.line(text, limit: 400))"
            }
            return Output.note(
                "The provider \(reason ?? "has no page to sign out in the browser"). A browser that is signed in there "
                    + "stays signed in.")
        }
        if json.isWanted { return }
        guard !noBrowser else { return Output.line(Sanitizer.line(url, limit: 16_384)) }
        // An address of the daemon that leads to the page once. The page's URL may have the ID token in it, and every
        // user of the machine can read a browser's arguments.
        let openURL = answer["end_session_open_url"]?.string
        if openURL == nil {
            let reason = RingbackError(reading: answer["end_session_open_url_error"])?.detail
            let text = Sanitizer.line(reason ?? "The daemon has no address for a browser to open.", limit: 400)
            Output.note("No browser was started. \(text)")
        }
        guard let openURL, let calls = try? daemon.calls(), AccountBrowser(of: answer, by: calls).open(openURL) else {
            return Output.note("Open this page in a browser:\n  \(Sanitizer.line(url, limit: 16_384))")
        }
    }
}
