import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct AccountRemove: ParsableCommand {
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

    @Argument(help: "The account's name.", completion: Completions.accounts)
    var name: String

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

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: name) { () throws(RingbackError) in
            let file = try AccountFile(name: name, configuration: config)
            let calls = try daemon.calls()
            guard try isDefined(file) else { return try removeSealed(calls) }
            try AccountDependents.refuse(file, config: config)
            let holdings = AccountHoldings(name: name, calls: calls)
            if !yes {
                let sockets = try holdings.sockets(needsDaemon: false)
                let ends = sockets.map { "The restricted socket \(Sanitizer.line($0)) is revoked." }
                try confirm(file, ends)
            }
            let isOwed = keepSession ? false : try signOut(calls)
            let sockets = try holdings.revokeSockets(needsDaemon: !keepSession)
            let registration = keepSession || keepRegistration ? nil : try holdings.deleteRegistration()
            try file.remove()
            try calls.reloadIfRunning()
            if isOwed { try holdings.forgetSignOut() }
            guard !json.isWanted else {
                var object = JSONObject([
                    .init("account", .string(name)), .init("file", .string(file.path)),
                    .init("signed_out", .bool(!keepSession)),
                    .init("exposed_sockets", .array(sockets.map { .string($0) })),
                ])
                if !keepSession { object["provider_told"] = .bool(!isOwed) }
                object["registration"] = registration?.document
                return Output.json(.object(object))
            }
            Output.line("Removed the account \(name): \(file.path)")
            for socket in sockets { Output.line("Revoked its restricted socket: \(Sanitizer.line(socket))") }
            if let registration { Output.line(registration.text) }
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
    }

    /// False if nothing defines the account. Throws unless the file is the one that `account add` writes and defines
    /// nothing else.
    private func isDefined(_ file: AccountFile) throws(RingbackError) -> Bool {
        let report: JSON
        do throws(RingbackError) {
            report = try ConfigurationCheck.run(config: config, candidate: nil)
        } catch {
            // The mistake may be in the file that is to be removed.
            guard error.kind == .invalidConfiguration, file.exists else { throw error }
            return true
        }
        guard let source = AccountSource(of: name, in: report) else { return false }
        guard source.file == file.path else {
            throw RingbackError(
                "account_elsewhere",
                "The account \(name) is defined in \(source.text), which “ringback account add” did not write. "
                    + "Nothing was removed. To change that file: \(shown: "ringback account edit \(name)")")
        }
        for origin in OriginEntry.all(in: report) where origin.source.file == file.path && origin.account != name {
            throw alsoDefines("the origin \(origin.rule.pattern.text)", file)
        }
        for kept in report["kept_files"]?.array ?? [] where kept["account"]?.string != name {
            guard AccountSource(of: kept)?.file == file.path else { continue }
            throw alsoDefines("the kept file \(kept["path"]?.string ?? "")", file)
        }
        for list in ["accounts", "schemes", "exposes"] {
            for entry in report[list]?.array ?? [] {
                guard let other = entry["name"]?.string, list != "accounts" || other != name,
                    AccountSource(of: entry)?.file == file.path
                else { continue }
                throw alsoDefines(other, file)
            }
        }
        return true
    }

    private func alsoDefines(_ other: String, _ file: AccountFile) -> RingbackError {
        RingbackError(
            "account_elsewhere",
            "\(file.path) also defines \(Sanitizer.line(other)). Nothing was removed. To change that file: "
                + "\(shown: "ringback account edit \(name)")")
    }

    /// The account is in the vault only.
    private func removeSealed(_ calls: BrokerCalls) throws(RingbackError) {
        let sessions = SealedSession.all(in: try calls.call(.getStatus)).filter { $0.account == name }
        guard !sessions.isEmpty else {
            throw RingbackError(
                .accountNotFound,
                "There is no account “\(Sanitizer.line(name))” in the configuration, and no session of it in the "
                    + "vault.")
        }
        guard !keepSession else {
            throw RingbackError(
                .accountNotFound,
                "There is no account “\(Sanitizer.line(name))” in the configuration. Its sessions stay in the vault.")
        }
        for session in sessions {
            Output.note("The vault holds the session of \(session.text); no configured account has it.")
            if !noRevoke, !session.isRevocable {
                Output.note(
                    "It cannot be revoked, because the account's settings for that were removed. To have it "
                        + "revoked, add the account again as it was, then: \(shown: "ringback account remove \(name)")")
            }
        }
        try confirm("Remove it from the vault?")
        try SealedSession.remove(of: name, revokes: !noRevoke, calls, asJSON: json.isWanted)
        guard !keepRegistration else { return }
        let holdings = AccountHoldings(name: name, calls: calls)
        for session in sessions {
            guard let text = holdings.deleteRegistration(at: session.provider, clientID: session.clientID) else {
                continue
            }
            Output.note(text)
        }
    }

    private func confirm(_ file: AccountFile, _ consequences: [String]) throws(RingbackError) {
        let what = keepSession ? "Remove the account \(name)" : "Sign out of \(name) and remove the account"
        try confirm("\(what) (\(file.path))?", consequences)
    }

    private func confirm(_ question: String, _ consequences: [String] = []) throws(RingbackError) {
        guard !yes else { return }
        guard Console.Stream.input.isTerminal, Console.Stream.errors.isTerminal else {
            throw RingbackError(
                .cancelled,
                "Without a terminal nothing is removed unless you confirm it: \(shown: "ringback account remove \(name) --yes")"
            )
        }
        for sentence in consequences { Output.note(sentence) }
        guard Prompt.confirm(question) else {
            throw RingbackError(.cancelled, "Nothing was removed.")
        }
    }

    /// True if the provider has not been told, and the account is to be removed all the same.
    private func signOut(_ calls: BrokerCalls) throws(RingbackError) -> Bool {
        do throws(RingbackError) {
            let answer = try calls.call(.signOut, [name], query: [("forget", "true")])
            guard answer["revocation_pending"]?.bool == true else {
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
                var error = error
                error.detail +=
                    " Nothing was removed. To remove the account and keep its session: "
                    + "\(shown: "ringback account remove \(name) --keep-session")"
                throw error
            }
        }
        guard !noRevoke else { return true }
        var error = RingbackError(
            .providerUnreachable,
            "\(name) is signed out here, but its provider has not been told, so its tokens may still be valid. The account "
                + "stays, since the provider can be told only as long as it is configured.", recovery: .retry)
        error.advice =
            "Try again: \(shown: "ringback account remove \(name)"), or remove it without telling the provider: "
            + "\(shown: "ringback account remove \(name) --no-revoke")"
        throw error
    }
}

/// What the daemon holds for an account that is to be removed, besides its session.
struct AccountHoldings {
    let name: String
    let calls: BrokerCalls

    /// A client that was deleted.
    struct Registration {
        let document: JSON

        var text: String {
            let client = Sanitizer.line(document["client_id"]?.string ?? "", limit: 1_100)
            let issuer = Sanitizer.line(document["issuer"]?.string ?? "", limit: 2_000)
            return document["deleted_at_provider"]?.bool == true
                ? "Deleted its client \(client) at \(issuer)"
                : "Its client \(client) stays registered at \(issuer), which gave no token to delete it with."
        }
    }

    /// Revokes the restricted sockets that `ringback expose` made for the account: they would serve the next session of an
    /// account of this name. Returns their names.
    ///
    /// - Parameter needsDaemon: false returns none if no daemon answers.
    func revokeSockets(needsDaemon: Bool) throws(RingbackError) -> [String] {
        let sockets = try sockets(needsDaemon: needsDaemon)
        for socket in sockets {
            do throws(RingbackError) {
                _ = try calls.call(.revokeExposedSocket, [socket])
            } catch {
                // It has ended meanwhile.
                guard error.kind == .notFound else { throw error }
            }
        }
        return sockets
    }

    /// The names of the restricted sockets that `ringback expose` made for the account.
    ///
    /// - Parameter needsDaemon: false returns none if no daemon answers.
    func sockets(needsDaemon: Bool) throws(RingbackError) -> [String] {
        let answer: JSON
        do throws(RingbackError) {
            answer = try calls.call(.listExposedSockets)
        } catch {
            guard error.kind == .notFound || (error.kind == .noDaemon && !needsDaemon) else { throw error }
            return []
        }
        var names: [String] = []
        for list in ["exposed_sockets", "closed"] {
            for entry in answer[list]?.array ?? [] {
                guard entry["source"] == "api", let socket = entry["name"]?.string, !names.contains(socket),
                    (entry["accounts"]?.array ?? []).contains(.string(name))
                else { continue }
                names.append(socket)
            }
        }
        return names
    }

    /// Deletes the client that `ringback account add --register` registered, at the provider (RFC 7592) and in the vault.
    /// Nil if there is none.
    func deleteRegistration() throws(RingbackError) -> Registration? {
        do throws(RingbackError) {
            return Registration(document: try calls.call(.deleteRegistration, [name], timeout: .seconds(60)))
        } catch {
            if error.kind == .notFound || error.kind == .accountNotFound { return nil }
            var error = error
            error.detail += " The client that was registered for \(name) could not be deleted, so the account stays."
            error.advice =
                "Try again: \(shown: "ringback account remove \(name)"), or leave the client as it is: "
                + "\(shown: "ringback account remove \(name) --keep-registration")"
            throw error
        }
    }

    /// The same for an account that is not configured any more. Returns what happened, as text for the user.
    func deleteRegistration(at issuer: String, clientID: String) -> String? {
        do throws(RingbackError) {
            let query: [(String, String?)] = [("issuer", issuer), ("client_id", clientID)]
            let document = try calls.call(.deleteRegistration, [name], query: query, timeout: .seconds(60))
            return Registration(document: document).text
        } catch {
            // There is none, or a configured account uses it.
            if [.notFound, .stateConflict, .validationFailed].contains(error.kind) { return nil }
            return "Its client \(Sanitizer.line(clientID, limit: 1_100)) stays registered: "
                + Sanitizer.line(error.detail, limit: 400)
        }
    }

    /// Drops the sign-out that the provider has not been told of. Without the account, the provider can no longer be told.
    func forgetSignOut() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try calls.call(.removeSealedSessions, [name], query: [("skip_revocation", "true")])
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }
}
