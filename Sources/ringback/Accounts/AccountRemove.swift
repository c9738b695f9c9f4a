import ArgumentParser
import Glibc
import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct AccountRemove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Sign out of an account and remove it.",
        discussion: """
            Signs out, with revocation at the provider, then removes the file that "ringback account add" wrote and lets a \
            running daemon read the configuration. An account that is defined in another file is not removed; the message \
            names that file. The [[origin]] tables that have tokens of the account are removed with it. Nothing is removed \
            if something else of the configuration needs the account, or if the sign-out fails. Of an account that is not configured any more, the \
            sessions that the vault still holds are revoked where that is possible, and removed.
            """)

    @Argument(help: "The account's name.", completion: Completions.accounts)
    var name: String

    @Flag(help: "Do not sign out. The session stays sealed in the vault, and is used if the account is added again.")
    var keepSession = false

    @Flag(help: "Remove the sessions of an account that is not configured any more without telling the provider.")
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
            guard !noRevoke else {
                throw RingbackError(
                    ExitStatus.usageKind,
                    "--no-revoke is for an account that is not configured any more; \(name) is configured.")
            }
            let dependents = try AccountDependents(of: file, config: config)
            let origins = dependents.origins.map(\.rule.pattern.text)
            try confirm(file, origins)
            if !keepSession { try signOut(calls) }
            try dependents.remove()
            try file.remove()
            try calls.reloadIfRunning()
            guard !json.isWanted else {
                return Output.json([
                    "account": .string(name), "file": .string(file.path), "signed_out": .bool(!keepSession),
                    "origins": .array(origins.map { .string($0) }),
                ])
            }
            Output.line("Removed the account \(name): \(file.path)")
            for origin in origins { Output.line("Removed its origin: \(Sanitizer.line(origin))") }
            if dependents.isDefault { Output.note("It was the default account; there is none now.") }
            if keepSession {
                Output.note(
                    "Its session, if there is one, stays sealed in the vault. To remove it: ringback account remove "
                        + name)
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
                    + "Nothing was removed. To change that file: ringback account edit \(name)")
        }
        for origin in OriginEntry.all(in: report) where origin.source.file == file.path && origin.account != name {
            throw alsoDefines("the origin \(origin.rule.pattern.text)", file)
        }
        for list in ["accounts", "schemes", "exposes"] {
            for entry in report[list]?.array ?? [] {
                guard let other = entry["name"]?.string, list != "accounts" || other != name,
                    let text = entry["source"]?.string, AccountSource(parsing: text).file == file.path
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
                + "ringback account edit \(name)")
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
                        + "revoked, add the account again as it was, then: ringback account remove \(name)")
            }
        }
        try confirm("Remove it from the vault?")
        try SealedSession.remove(of: name, revokes: !noRevoke, calls, asJSON: json.isWanted)
    }

    private func confirm(_ file: AccountFile, _ origins: [String]) throws(RingbackError) {
        let what = keepSession ? "Remove the account \(name)" : "Sign out of \(name) and remove the account"
        let more = origins.isEmpty ? "" : " and its origins \(Sanitizer.line(origins.joined(separator: ", ")))"
        try confirm("\(what) (\(file.path))\(more)?")
    }

    private func confirm(_ question: String) throws(RingbackError) {
        guard !yes else { return }
        guard Console.Stream.input.isTerminal, Console.Stream.errors.isTerminal else {
            throw RingbackError(
                .cancelled,
                "Without a terminal nothing is removed unless you confirm it: ringback account remove \(name) --yes")
        }
        guard Prompt.confirm(question) else {
            throw RingbackError(.cancelled, "Nothing was removed.")
        }
    }

    private func signOut(_ calls: BrokerCalls) throws(RingbackError) {
        do throws(RingbackError) {
            _ = try calls.call(.signOut, [name])
        } catch {
            switch error.kind {
            // The daemon has not read the account yet, so it holds no session of it.
            case .accountNotFound: return
            case .noDaemon:
                throw RingbackError(
                    .noDaemon,
                    "No daemon answers, so \(name) cannot be signed out. Nothing was removed. Start the daemon, or keep "
                        + "the session: ringback account remove \(name) --keep-session")
            default:
                var error = error
                error.detail +=
                    " Nothing was removed. To remove the account and keep its session: ringback account remove "
                    + "\(name) --keep-session"
                throw error
            }
        }
    }
}
