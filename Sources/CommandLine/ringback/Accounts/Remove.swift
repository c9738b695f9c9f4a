import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct AccountRemove: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Sign out of an account and remove it.",
        discussion: """
            Signs out, with revocation at the provider, then removes the file that "ringback account add" wrote and lets a \
            running daemon read the configuration. An account that is defined in another file is not removed; the message \
            names that file. The restricted sockets that "ringback expose" made for it are revoked, and a client that \
            "--register" registered is deleted at the provider. The account stays if something else of the configuration \
            needs it, such as an [[origin]], [[file]] or [[expose]] table or the default account: the message has the \
            commands that remove that. It stays, too, if the sign-out fails, or if the provider cannot be told of it. Of an \
            account that is not configured any more, the sessions that the vault still holds are revoked where that is \
            possible, and removed.
            """)

    @Argument(help: .value("name", "The account's name."), completion: Completions.accounts) var account: String

    @Flag(
        help: """
            Do not sign out. The session stays sealed in the vault, with the client's registration, and is used if the \
            account is added again.
            """)
    var keepSession = false

    @Flag(help: "Do not delete the client that was registered for the account at the provider.")
    var keepRegistration = false

    @Flag(
        help: """
            Remove the account although the provider cannot be told that its session has ended; of an account that is not \
            configured any more, remove the sessions without telling the provider.
            """)
    var noRevoke = false

    @Flag(name: .shortAndLong, help: "Do not ask.") var yes = false
    @OptionGroup var config: ConfigurationOption
    @OptionGroup var options: CallOptions

    func run() throws {
        let name = account
        let file = try AccountFile(name: name, configuration: config.path)
        let calls = try daemon.calls()
        guard try isDefined(file) else { return try removeSealed(calls) }
        try AccountDependents.refuse(file, config: config.path)
        let holdings = AccountHoldings(name: name, calls: calls)
        if !yes {
            for socket in try holdings.sockets(needsDaemon: false) {
                Output.note("The restricted socket \(Sanitizer.line(socket)) is revoked.")
            }
            let what = keepSession ? "Remove the account \(name)" : "Sign out of \(name) and remove the account"
            try confirm("\(what) (\(file.path))?")
        }
        let isOwed = keepSession ? false : try signOut(calls)
        let sockets = try holdings.sockets(needsDaemon: !keepSession)
        // They would serve the next session of an account of this name. One that is not found has ended meanwhile.
        for socket in sockets { _ = try ignoring(.notFound, call: calls.call(.revokeExposedSocket, [socket])) }
        let registration = keepSession || keepRegistration ? nil : try holdings.deleteRegistration()
        try file.remove()
        try calls.reloadIfRunning()
        if isOwed {
            // Without the account, the provider can no longer be told of the sign-out.
            let query: [(String, String?)] = [("skip_revocation", "true")]
            _ = try ignoring(.notFound, call: calls.call(.removeSealedSessions, [name], query: query))
        }
        guard !json.isWanted else {
            return Output.object([
                "account": name, "file": file.path, "signed_out": !keepSession, "exposed_sockets": sockets,
                "provider_told": keepSession ? nil : !isOwed, "registration": registration,
            ])
        }
        Output.line("Removed the account \(name): \(file.path)")
        for socket in sockets { Output.line("Revoked its restricted socket: \(Sanitizer.line(socket))") }
        if let registration { Output.line(AccountHoldings.text(ofDeleted: registration)) }
        if isOwed {
            Output.note(
                "Its provider was not told that the session has ended. Its tokens stay valid until they expire, unless you "
                    + "end the session at the provider.")
        }
        if keepSession {
            Output.note(
                "Its session, if there is one, stays sealed in the vault. To remove it: "
                    + "\(shown: "ringback account remove \(name)")")
        }
    }

    /// False if nothing defines the account. Throws unless the file is the one that `account add` writes and defines
    /// nothing else.
    private func isDefined(_ file: AccountFile) throws(RingbackError) -> Bool {
        let report: JSON
        do throws(RingbackError) {
            report = try ConfigurationCheck.run(config: config.path)
        } catch {
            // The mistake may be in the file that is to be removed.
            guard error.kind == .invalidConfiguration, file.exists else { throw error }
            return true
        }
        guard let source = AccountSource(of: account, in: report) else { return false }
        guard source.file == file.path else {
            throw RingbackError(
                "account_elsewhere",
                "The account \(account) is defined in \(source.text), which “ringback account add” did not write. "
                    + "Nothing was removed. To change that file: \(shown: "ringback account edit \(account)")")
        }
        let kinds: [(list: String, what: String, name: String, account: String)] = [
            ("origins", "the origin ", "url", "account"), ("kept_files", "the kept file ", "path", "account"),
            ("accounts", "", "name", "name"), ("schemes", "", "name", ""), ("exposes", "", "name", ""),
        ]
        for kind in kinds {
            for entry in report.list(kind.list) where entry[kind.account]?.string != account {
                guard AccountSource(of: entry)?.file == file.path, let other = entry[kind.name]?.string else {
                    continue
                }
                throw RingbackError(
                    "account_elsewhere",
                    "\(file.path) also defines \(kind.what)\(Sanitizer.line(other)). Nothing was removed. To change that "
                        + "file: \(shown: "ringback account edit \(account)")")
            }
        }
        return true
    }

    private func removeSealed(_ calls: BrokerCalls) throws(RingbackError) {
        let sessions = SealedSession.all(in: try calls.call(.getStatus)).filter { $0.account == account }
        guard !sessions.isEmpty, !keepSession else {
            throw RingbackError(
                .accountNotFound,
                "There is no account “\(Sanitizer.line(account))” in the configuration"
                    + (sessions.isEmpty ? ", and no session of it in the vault." : ". Its sessions stay in the vault."))
        }
        for session in sessions {
            Output.note("The vault holds the session of \(session.text); no configured account has it.")
            if !noRevoke, !session.isRevocable {
                Output.note(
                    "It cannot be revoked, because the account's settings for that were removed. To have it revoked, "
                        + "add the account again as it was, then: \(shown: "ringback account remove \(account)")")
            }
        }
        try confirm("Remove it from the vault?")
        try SealedSession.remove(of: account, revokes: !noRevoke, calls, asJSON: json.isWanted)
        guard !keepRegistration else { return }
        let holdings = AccountHoldings(name: account, calls: calls)
        for session in sessions {
            if let text = holdings.deleteRegistration(at: session.provider, clientID: session.clientID) {
                Output.note(text)
            }
        }
    }

    private func confirm(_ question: String) throws(RingbackError) {
        guard !yes else { return }
        try Questions.confirm(question, "removed", orBy: ShownCommand("ringback account remove \(account) --yes"))
    }

    /// True if the provider has not been told, and the account is to be removed all the same.
    private func signOut(_ calls: BrokerCalls) throws(RingbackError) -> Bool {
        let name = account
        do throws(RingbackError) {
            let answer = try calls.call(.signOut, [name], query: [("forget", "true")])
            guard answer.isTrue("revocation_pending") else {
                return answer["revocation"]?.string == "not_offered"
            }
        } catch {
            switch error.kind {
            // The daemon has not read the account yet, so it holds no session of it.
            case .accountNotFound: return false
            case .noDaemon:
                throw RingbackError(
                    .noDaemon,
                    "No daemon answers, so \(name) cannot be signed out. Nothing was removed. Start the daemon, or keep "
                        + "the session: \(shown: "ringback account remove \(name) --keep-session")")
            default:
                throw error.with(
                    detail: error.detail + " Nothing was removed. To remove the account and keep its session: "
                        + "\(shown: "ringback account remove \(name) --keep-session")")
            }
        }
        guard !noRevoke else { return true }
        throw RingbackError(
            .providerUnreachable,
            "\(name) is signed out here, but its provider has not been told, so its tokens may still be valid. The account "
                + "stays, since the provider can be told only as long as it is configured.", recovery: .retry,
            advice:
                "Try again: \(shown: "ringback account remove \(name)"), or remove it without telling the provider: "
                + "\(shown: "ringback account remove \(name) --no-revoke")")
    }
}

struct AccountHoldings {
    let name: String
    let calls: BrokerCalls

    static func text(ofDeleted registration: JSON, _ what: String = "client") -> String {
        let client = registration.shown("client_id", limit: 1_100)
        let issuer = registration.shown("issuer", limit: 2_000)
        return registration.isTrue("deleted_at_provider")
            ? "Deleted its \(what) \(client) at \(issuer)"
            : "Its \(what) \(client) stays registered at \(issuer), which gave no token to delete it with."
    }

    /// The restricted sockets that `ringback expose` made for the account.
    func sockets(needsDaemon: Bool) throws(RingbackError) -> [String] {
        let answer = try ignoring(.notFound, needsDaemon ? .notFound : .noDaemon, call: calls.call(.listExposedSockets))
        let own = ["exposed_sockets", "closed"].flatMap { answer?.list($0) ?? [] }
            .filter { $0["source"] == "api" && $0.list("accounts").contains(.string(name)) }
        var seen: Set<String> = []
        return own.compactMap { $0["name"]?.string }.filter { seen.insert($0).inserted }
    }

    /// Deletes the client that `ringback account add --register` registered, at the provider (RFC 7592) and in the
    /// vault. Nil if there is none.
    func deleteRegistration() throws(RingbackError) -> JSON? {
        try explaining(
            ignoring(.notFound, .accountNotFound, call: calls.call(.deleteRegistration, [name], timeout: .seconds(60)))
        ) { error in
            error.with(
                detail: error.detail
                    + " The client that was registered for \(name) could not be deleted, so the account stays.",
                advice: "Try again: \(shown: "ringback account remove \(name)"), or leave the client as it is: "
                    + "\(shown: "ringback account remove \(name) --keep-registration")")
        }
    }

    /// The same for an account that is not configured any more. Returns what happened, as text for the user.
    func deleteRegistration(at issuer: String, clientID: String) -> String? {
        do throws(RingbackError) {
            // Nil if there is none, or a configured account uses it.
            return try ignoring(
                .notFound, .stateConflict, .validationFailed,
                call: calls.call(
                    .deleteRegistration, [name], query: [("issuer", issuer), ("client_id", clientID)],
                    timeout: .seconds(60))
            ).map { AccountHoldings.text(ofDeleted: $0) }
        } catch {
            return "Its client \(Sanitizer.line(clientID, limit: 1_100)) stays registered: "
                + Sanitizer.line(error.detail, limit: 400)
        }
    }
}

/// What else of the configuration needs an account that is to be removed: origins, kept files, restricted sockets, the
/// key `default`, other accounts. The daemon does not start with an entry that names an account that does not exist.
enum AccountDependents {
    /// Has the daemon check the configuration with an empty file in place of the account's. Changes nothing.
    ///
    /// - Throws: `invalid_configuration` with what needs the account, and the commands that remove it.
    static func refuse(_ account: AccountFile, config: String?) throws(RingbackError) {
        let before = try ConfigurationCheck.report(config)
        let empty = account.candidate
        try empty.write([])
        defer { empty.discard() }
        let after = try ConfigurationCheck.report(config, ["--draft", empty.path, "--draft-of", account.path])
        // Mistakes that the configuration has already do not prevent the removal of the account.
        let known = before.list("errors")
        let found = needs(of: account, in: before)
        // The check ends with the first kind of mistake, so it alone does not find everything. It finds what needs the
        // account in other ways, such as an account that signs in with it.
        let added =
            found
            + after.list("errors").filter { error in
                !known.contains(error) && !found.contains { $0["file"] == error["file"] && $0["line"] == error["line"] }
            }
        guard !added.isEmpty else { return }
        let error = RingbackError(
            Problem(
                .invalidConfiguration,
                "Something else of the configuration needs the account \(account.name). Nothing was removed.",
                extensions: ["errors": added]))
        throw error.adding(advice(on: added, account.name, before, config))
    }

    private static func needs(of account: AccountFile, in report: JSON) -> [JSON] {
        let lists: [(key: String, entries: [JSON])] = [
            ("default", [report["default"]].compactMap(\.self)), ("origin", report.list("origins")),
            ("file", report.list("kept_files")), ("expose", report.list("exposes")), ("run", report.list("runs")),
        ]
        return lists.flatMap { list in
            list.entries.compactMap { entry -> JSON? in
                let names = entry.list("accounts") + [entry["account"]].compactMap(\.self)
                guard names.contains(.string(account.name)), let source = AccountSource(of: entry),
                    source.file != account.path
                else { return nil }
                return .object([
                    "file": source.file, "key": list.key, "message": "it names \(account.name)", "line": source.line,
                ])
            }
        }
    }

    private static func advice(on errors: [JSON], _ name: String, _ report: JSON, _ config: String?) -> String {
        let more: ShownCommand = config.map { ShownCommand("--config=\($0)") } ?? ""
        let origins = OriginEntry.all(in: report).filter { origin in
            origin.account == name && errors.contains { isAbout(origin.source, $0) }
        }
        var commands = origins.map { origin in
            let user: ShownCommand = origin.rule.username.map { ShownCommand("--match-username=\($0)") } ?? ""
            return ShownCommand("ringback origin remove \(origin.rule.pattern.text) \(user) \(more)")
        }
        let rest = errors.filter { error in !origins.contains { isAbout($0.source, error) } }
        var files: [String] = []
        for file in rest.compactMap({ $0["file"]?.string }) where !files.contains(file) { files.append(file) }
        commands += files.map { ShownCommand("${EDITOR:-vi} \($0)") }
        commands.append(ShownCommand("ringback account remove \(name) \(more)"))
        return "Remove that first, then the account: " + commands.map { "\(shown: $0)" }.joined(separator: "; ")
    }

    private static func isAbout(_ source: AccountSource, _ error: JSON) -> Bool {
        source.file == error["file"]?.string && source.line == error["line"]?.integer
    }
}

struct SealedSession {
    let account: String
    private let person: String
    let provider: String
    let clientID: String
    let isRevocable: Bool

    init(reading document: JSON) {
        account = document.text("account")
        person = document["display_name"]?.string ?? "an unnamed user"
        provider = document["provider"]?.string ?? "its provider"
        clientID = document.text("client_id")
        isRevocable = document.isTrue("revocable")
    }

    var text: String { "\(Sanitizer.line(person)) at \(Sanitizer.line(provider, limit: 600))" }

    static func all(in status: JSON) -> [SealedSession] {
        status.list("sealed_sessions").map(SealedSession.init(reading:))
    }

    /// Removes an account's sessions and prints the result for each. Throws if a provider could not be reached.
    static func remove(of account: String, revokes: Bool, _ calls: BrokerCalls, asJSON: Bool) throws(RingbackError) {
        let answer = try calls.call(
            .removeSealedSessions, [account], query: [("skip_revocation", revokes ? nil : "true")],
            timeout: .seconds(120))
        let removed = answer.list("sessions")
        if asJSON { Output.json(answer) } else { removed.forEach(show) }
        guard let waiting = removed.first(where: { $0["revocation"]?.string == "waiting" }) else { return }
        let error =
            RingbackError(reading: waiting["error"])
            ?? RingbackError(.providerUnreachable, "The provider cannot be reached.", recovery: .retry)
        throw error.adding(
            "No program can use the session any more, but the provider has not revoked it. Try again: "
                + "\(shown: "ringback account remove \(account)"), or remove it without revocation: "
                + "\(shown: "ringback account remove \(account) --no-revoke")")
    }

    private static func show(_ document: JSON) {
        guard let word = document["revocation"]?.string, word != "waiting" else { return }
        Output.line("Removed the session of \(SealedSession(reading: document).text) from the vault.")
        let rest = "Its tokens stay valid until they expire, unless you end the session at the provider."
        switch word {
        case "revoked": Output.note("The provider has revoked the session.")
        case "not_asked": Output.note("The provider was not asked to revoke the session. \(rest)")
        case "not_offered": Output.note("The provider offers no revocation. \(rest)")
        case "settings_gone":
            Output.note("The session could not be revoked, because the account's settings were removed. \(rest)")
        default:
            let reason = RingbackError(reading: document["error"])?.detail ?? "The provider rejected the request."
            Output.note("The session was not revoked: \(Sanitizer.line(reason, limit: 600)) \(rest)")
        }
    }
}
