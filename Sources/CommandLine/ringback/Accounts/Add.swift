import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct AccountAdd: DaemonVerb, AccountNaming {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Write a checked account beside the configuration.",
        discussion: """
            Prints what to register at the provider, and lets a running daemon read the account. The daemon checks the \
            file and contacts the provider. Nothing is written if it finds a mistake.

            On a terminal it asks for what the options do not say: the provider, the name and the client. Without \
            --origins and --login it also asks whether to do these. Without a terminal it never asks.
            """)

    @Argument(help: .value("name", "The account's name.")) var account: String?
    @OptionGroup var description: AccountDescription
    @OptionGroup var config: ConfigurationOption

    @Flag(help: "Replace an account that “ringback account add” wrote; its session stays if the provider is the same.")
    var replace = false

    @Flag(help: "Do not ask the provider.") var offline = false

    @Flag(help: "Add the usual origins of a github or gitlab account, so that git and other tools get its token.")
    var origins = false

    @Flag(help: "Sign in at once.") var login = false
    @OptionGroup var registration: AccountRegistration
    @OptionGroup var options: CallOptions

    static let command: ShownCommand = "ringback account add"
    static let noneYet = "No account is configured. Run: \(shown: command)"
    static let nameRule = "A name has small letters, digits, “.”, “_” and “-”, at most 64, a letter or digit first."

    var name: String { account ?? "" }
    private var signsIn: Bool { login && !description.noSignIn && !description.isService }
    private var missing: [String] { description.missing(account, registers: registration.register) }
    private var asks: Bool { !missing.isEmpty && !json.isWanted && Questions.arePossible }

    func validate() throws {
        try require(account.map(RequestTarget.isAccountName) ?? true, AccountAdd.nameRule)
        try description.check()
        try registration.check(description)
        try require(
            !(offline && registration.register), "--register contacts the provider: leave out --register or --offline.")
        try require(
            !origins || description.isOpen || !UsualOrigin.all(of: description.provider).isEmpty,
            "--origins is for --provider github and gitlab: use ringback origin add.")
        // The daemon's check finds everything else that is missing.
        try require(asks || (account != nil && !description.isOpen), "Missing: \(missing.joined(separator: "; ")).")
    }

    mutating func run() throws {
        try pinIssuer()
        let hasShownURIs = try readMissing()
        try write(showsURIs: !hasShownURIs)
        guard signsIn else { return }
        let words = [name] + (daemon.socket.map { ["--socket", $0] } ?? []) + (json.isWanted ? ["--json"] : [])
        var verb = try Login.parse(words + (replace ? ["--again"] : []))
        try verb.run()
    }

    /// Reads the secret, and asks for what is missing. True if it has shown the redirect URIs to enter at the provider.
    private mutating func readMissing() throws -> Bool {
        guard asks || description.clientSecretFD != nil else { return false }
        try Signals.interruption()
        if let descriptor = description.clientSecretFD {
            description.clientSecret = try SecretInput.read("client secret", from: descriptor)
        }
        guard asks else { return false }
        let report = try ConfigurationCheck.run(config: config.path)
        var conversation = AccountConversation(
            add: self, calls: try daemon.interruptibleCalls(),
            questions: Questions(ending: "No account was added."))
        try conversation.run(report.names("accounts"))
        self = conversation.add
        // The conversation has asked the provider already, if that was possible.
        offline = true
        return conversation.hasShownURIs
    }

    private mutating func write(showsURIs: Bool) throws {
        let file = try AccountFile(name: name, configuration: config.path)
        try checkName(file)
        let former = replace && registration.register ? FormerClient(in: file.path) : nil
        let added = registration.register ? try addRegistered(file) : try add(file, nil)
        show(added, file, showsURIs)
        if origins { try addOrigins() }
        try daemon.calls().reloadIfRunning()
        // The daemon deletes no client that an account uses.
        if let former, former.clientID != added.registered?.clientID { former.delete(name, try daemon.calls()) }
        if !signsIn, !json.isWanted { showNext() }
    }

    /// The authorization server of a service at an MCP server is the one that the server names now, if the user takes it:
    /// a hostile server could name its own later.
    private mutating func pinIssuer() throws(RingbackError) {
        guard description.mcp != nil, description.isService, description.issuer == nil, !offline else { return }
        let found = try ProviderCheck.run(account ?? "new", description.withoutClient, try daemon.calls())
        guard let issuer = found.issuer else {
            if let error = found.error { throw error }
            return
        }
        Output.note(
            "The MCP server names \(Sanitizer.line(issuer, limit: 600)) as its authorization server. What proves the account "
                + "will be sent there, and nowhere else.")
        if Questions.arePossible, !json.isWanted, !Prompt.confirm("Is that right?") {
            throw RingbackError(.cancelled, "No account was added.")
        }
        description.issuer = issuer
    }

    private func addOrigins() throws(RingbackError) {
        let file = try config.file()
        for origin in UsualOrigin.all(of: description.provider) {
            let rule = OriginRule(try OriginEntry.pattern(origin.url), username: nil)
            guard !OriginEntry.all(in: try file.report()).contains(where: { $0.rule == rule }) else { continue }
            let keys = [("url", origin.url), ("account", name), ("username", origin.username)]
            let table = AccountText.table("[origin]", keys.map { ($0, $1.map(AccountText.quoted)) })
            _ = try file.addOrigin(rule, table)
            Output.note("Tools get its token for \(origin.url)")
        }
    }

    private struct Added {
        let report: JSON
        let registered: RegisteredAccount?
        var provider: JSON?
    }

    private mutating func add(_ file: AccountFile, _ registered: RegisteredAccount?) throws(RingbackError) -> Added {
        let report = try file.check(description.text(for: name, registered: registered), config: config.path)
        var added = Added(report: report, registered: registered)
        // A provider that has just registered the client was contacted already.
        if !offline, registered == nil {
            let calls = try daemon.calls()
            let found = try ProviderCheck.run(name, description, calls)
            if let error = found.error { throw error }
            added.provider = found.checks
            if found.checks != nil, description.hasSecret,
                let error = try ProviderCheck.run(name, description, calls, isClientOnly: true).error
            {
                throw error
            }
            description.leaveOutOfflineAccess(found)
            description.leaveOutSignIn(found)
        }
        try file.write(description.text(for: name, registered: registered), replacing: replace)
        return added
    }

    /// The file is checked before anything is registered. If it cannot be written afterwards, the registration is
    /// deleted.
    private mutating func addRegistered(_ file: AccountFile) throws(RingbackError) -> Added {
        let calls = try daemon.calls()
        // If no daemon runs, nothing is read from the user and nothing is sent to the provider.
        _ = try calls.call(.getStatus)
        var draft = description
        draft.clientID = AccountRegistration.standIn
        // The client's authentication method is not known before it is registered, and its secret does not exist yet.
        draft.clientAuthentication = nil
        _ = try file.check(draft.text(for: name), config: config.path)
        let registered = try registration.run(name, description, replacing: replace, calls)
        do throws(RingbackError) {
            return try add(file, registered)
        } catch {
            throw error.adding(registration.undo(registered, name, description, calls))
        }
    }

    private func checkName(_ file: AccountFile) throws(RingbackError) {
        let known = try ConfigurationCheck.run(config: config.path)
        guard let source = AccountSource(of: name, in: known) else { return }
        guard replace else {
            throw RingbackError(
                "account_exists",
                "The account \(name) is defined already in \(source.text). To change it: "
                    + "\(shown: "ringback account edit \(name)"), or add it again with --replace")
        }
        guard source.file == file.path else {
            throw RingbackError(
                "account_elsewhere",
                "The account \(name) is defined in \(source.text), which “ringback account add” did not write. Nothing "
                    + "was replaced. To change that file: \(shown: "ringback account edit \(name)")")
        }
    }

    private func show(_ added: Added, _ file: AccountFile, _ showsURIs: Bool) {
        let account = ConfigurationCheck.account(name, in: added.report)
        let uris = account.map(ConfigurationCheck.redirectURIs) ?? []
        let omissions = ProviderChoice(description)?.omissions(in: description, forGit: origins) ?? []
        var notes = (account?.texts("notes") ?? []) + omissions
        guard !json.isWanted else {
            return Output.object([
                "account": name, "file": file.path, "redirect_uris": uris, "notes": notes,
                "registration": added.registered?.document,
                "provider_asked": added.provider != nil || added.registered != nil, "checks": added.provider,
            ])
        }
        if let step = account.flatMap(ConfigurationCheck.step) { notes.append(step) }
        defer { for note in notes { Output.note(Sanitizer.line(note, limit: 600)) } }
        Output.line("Added the account \(name): \(file.path)")
        if let registered = added.registered { return AccountRegistration.show(registered, description) }
        let isProject = account?["provider"]?.string == "supabase"
        let entered = ProviderChoice(description)?.entered(uris) ?? uris
        if !entered.isEmpty, !description.isSandbox, showsURIs {
            let place = isProject ? "Add to the project's redirect URLs:" : "Register at the provider, as redirect URI:"
            Output.line(place)
            for uri in entered { Output.line("  " + Sanitizer.line(uri, limit: 2_000)) }
            if entered.contains(where: { $0.contains("{port}") }) { Output.note(ProviderChoice.portNote) }
        }
    }

    /// A replaced account may hold a session, which a sign-in replaces only if that is asked for.
    private func showNext() {
        guard !description.noSignIn, description.mcp == nil || !description.isService else {
            return Output.note(
                "Nobody has to sign in. To put it into an AI tool: \(shown: "ringback mcp add-to TOOL \(name)")")
        }
        guard !description.isService else {
            return Output.note("Nobody has to sign in. Then run: \(shown: "ringback token \(name)")")
        }
        Output.note("Then run: \(shown: "ringback login \(name) \(replace ? "--again" : "" as ShownCommand)")")
    }
}
