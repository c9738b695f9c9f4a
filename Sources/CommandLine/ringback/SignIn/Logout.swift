import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

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
