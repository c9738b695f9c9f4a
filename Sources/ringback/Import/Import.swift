import Adapters
import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

extension ForeignProgram: ExpressibleByArgument {}

/// Makes an account of one that another program has. Nothing of the other program is changed.
struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Take over an account of oidc-agent, pizauth, git-credential-oauth, gh or glab.",
        discussion: """
            Shows the account that it would add, asks, and adds it as “ringback account add” does. The other program keeps \
            what it has. oidc-gen asks for the account's passphrase itself.
            """)

    @Argument(help: "oidc-agent, pizauth, git-credential-oauth, gh or glab.")
    var program: ForeignProgram

    @Argument(help: ArgumentHelp("The other program's account or host, if it has several.", valueName: "entry"))
    var entry: String?

    @Option(help: "The account's name here, if not the other program's.")
    var account: String?

    @Option(
        help: ArgumentHelp(
            "The file to read, if not the program's own; “-” is standard input.", valueName: "path"),
        completion: .file())
    var file: String?

    @Option(help: ArgumentHelp("The client id, where the other program has none of yours.", valueName: "id"))
    var clientID: String?

    @Flag(
        help: """
            Take over the session too. Its refresh token may change with the first refresh; then the other program has to \
            sign in again.
            """)
    var session = false

    @Flag(name: .customLong("print"), help: "Show the account and add nothing.")
    var onlyPrints = false

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard account.map(RequestTarget.isAccountName) ?? true else { throw ValidationError(AccountAdd.nameRule) }
    }

    func run() throws {
        var found: ForeignAccount?
        try present { () throws(RingbackError) in found = try choose() }
        guard let found else { return }
        let name = account ?? found.accountName
        var add = try add(found, name)
        Import.show(add.description, name, found)
        guard !onlyPrints else { return }
        let token = found.refreshToken
        var takesSession = session && token != nil
        try present(account: name) { () throws(RingbackError) in
            guard found.clientID ?? clientID != nil || Questions.arePossible else {
                throw RingbackError(
                    ExitStatus.usageKind, "\(program.rawValue) has no client of yours: name one with --client-id.")
            }
            takesSession = try confirm(token != nil)
            if let issuer = found.issuer { add.description.issuer = try issuerToUse(issuer, add.description, name) }
        }
        guard takesSession, let token else { return try add.run() }
        try add.add(isSessionTakenOver: true)
        try present(account: name) { () throws(RingbackError) in
            _ = try daemon.calls().call(
                .signIn, [name], body: ["method": "session", "refresh_token": .string(token)], timeout: .seconds(60))
            Output.line("Took over the session of \(name).")
            Output.note("If its refresh token has changed, \(program.rawValue) has to sign in again.")
        }
    }

    private func choose() throws(RingbackError) -> ForeignAccount {
        let accounts = try program.accounts(entry: entry, file: file)
        if entry == nil, accounts.count == 1, let only = accounts.first { return only }
        guard let found = accounts.first(where: { $0.name == entry }) else {
            throw ForeignProgram.unknown(entry, among: accounts.map(\.name))
        }
        return found
    }

    /// The verb that adds the account. Secrets are no arguments.
    private func add(_ found: ForeignAccount, _ name: String) throws -> AccountAdd {
        let options: [(String, String?)] = [
            ("issuer", found.issuer), ("provider", found.preset),
            ("authorization-endpoint", found.authorizationEndpoint), ("token-endpoint", found.tokenEndpoint),
            // What is not known is asked for on a terminal; `run` refuses it elsewhere.
            ("client-id", found.clientID ?? clientID ?? (Questions.arePossible ? nil : AccountRegistration.standIn)),
            ("redirect-uri", found.redirectURI), ("config", config), ("socket", daemon.socket),
        ]
        var words = [name] + options.compactMap { option, value in value.map { "--\(option)=\($0)" } }
        words += found.scopes.map { "--scope=\($0)" }
        var add = try AccountAdd.parse(words)
        add.description.clientSecret = found.clientSecret
        return add
    }

    private static func show(_ description: AccountDescription, _ name: String, _ found: ForeignAccount) {
        var shown = description
        if shown.clientSecret != nil { shown.clientSecret = "(not shown)" }
        if shown.clientID == AccountRegistration.standIn { shown.clientID = nil }
        for line in shown.text(for: name).split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            Output.line(Sanitizer.line(String(line), limit: 20_000))
        }
        for note in found.notes { Output.note(note) }
        if let server = found.server {
            Output.note(
                "So that git asks Ringback: ringback origin add \(server) --account \(name), then ringback setup git")
        }
    }

    /// Asks whether to go on.
    ///
    /// - Returns: true if the session is to be taken over.
    private func confirm(_ hasSession: Bool) throws(RingbackError) -> Bool {
        if session, !hasSession {
            Output.note("There is no session of \(program.rawValue) to take over: sign in afterwards.")
        }
        guard !yes else { return session && hasSession }
        guard Questions.arePossible else {
            throw RingbackError(
                .cancelled, "Without a terminal nothing is added unless you confirm it: the same command with --yes")
        }
        let questions = Questions(interruption: try Signals.interruption(), ending: "No account was added.")
        guard try questions.confirm("Add this account?", byDefault: true) else {
            throw RingbackError(.cancelled, questions.ending)
        }
        guard hasSession, !session else { return session && hasSession }
        return try questions.confirm(
            "Take over its session? \(program.rawValue) may have to sign in again afterwards.", byDefault: false)
    }

    /// The issuer as the provider writes it: oidc-agent adds a slash.
    private func issuerToUse(
        _ issuer: String, _ description: AccountDescription, _ name: String
    ) throws(RingbackError) -> String {
        let all = program == .oidcAgent ? OIDCAgentAccount.issuers(of: issuer) : [issuer]
        for candidate in all.dropLast() {
            var tried = description
            tried.issuer = candidate
            do throws(RingbackError) {
                _ = try ProviderCheck.run(name, tried, try daemon.calls())
                return candidate
            } catch {
                guard error.kind == .invalidConfiguration || error.kind == .invalidProviderResponse else { throw error }
            }
        }
        return all.last ?? issuer
    }
}
