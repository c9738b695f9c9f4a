import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct AccountAdd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Write a checked account beside the configuration.",
        discussion: """
            Prints what to register at the provider, and lets a running daemon read the account. The daemon checks the \
            file and contacts the provider. Nothing is written if it finds a mistake.

            On a terminal it asks for what the options do not say: the provider, the name and the client. Without \
            --origins and --login it also asks whether to do these. Without a terminal it never asks.
            """)

    @Argument(help: ArgumentHelp("The account's name.", valueName: "name"))
    var stated: String?

    @OptionGroup var description: AccountDescription

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @Flag(
        help: "Replace an account that “ringback account add” wrote; its session stays if the provider is the same.")
    var replace = false

    @Flag(help: "Do not ask the provider.")
    var offline = false

    @Flag(help: "Add the usual origins of a github or gitlab account, so that git and other tools get its token.")
    var origins = false

    @Flag(help: "Sign in at once.")
    var login = false

    @OptionGroup var registration: AccountRegistration
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    /// On a terminal it asks for the rest; elsewhere it says what is missing.
    static let command: ShownCommand = "ringback account add"
    static let nameRule =
        "A name has small letters, digits, “.”, “_” and “-”, at most 64, a letter or digit first."

    private var name: String { stated ?? "" }

    private var missing: [String] { description.missing(stated, registers: registration.register) }

    /// What is missing is asked for.
    private var asks: Bool { !missing.isEmpty && !json.isWanted && Questions.arePossible }

    func validate() throws {
        guard stated.map(RequestTarget.isAccountName) ?? true else { throw ValidationError(AccountAdd.nameRule) }
        try description.check()
        try registration.check(description)
        guard !(offline && registration.register) else {
            throw ValidationError("--register contacts the provider: leave out --register or --offline.")
        }
        guard !origins || description.isOpen || !UsualOrigin.all(of: description.provider).isEmpty else {
            throw ValidationError("--origins is for --provider github and gitlab: use ringback origin add.")
        }
        // The daemon's check finds everything else that is missing.
        guard asks || (stated != nil && !description.isOpen) else {
            throw ValidationError("Missing: \(missing.joined(separator: "; ")).")
        }
    }

    mutating func run() throws {
        let hasShownURIs = try readMissing()
        try write(showsURIs: !hasShownURIs, showsNext: !login)
        guard login, !description.needsNoSignIn else { return }
        let words = [name] + (daemon.socket.map { ["--socket", $0] } ?? []) + (json.isWanted ? ["--json"] : [])
        let verb = try Login.parse(words + (replace ? ["--again"] : []))
        try verb.run()
    }

    /// Reads the secret, and asks for what is missing. True if it has shown the redirect URIs to enter at the provider.
    private mutating func readMissing() throws -> Bool {
        guard asks || description.clientSecretDescriptor != nil else { return false }
        do throws(RingbackError) {
            let interruption = try Signals.interruption()
            if let descriptor = description.clientSecretDescriptor {
                description.clientSecret = try SecretInput(interruption: interruption)
                    .read("client secret", from: descriptor)
            }
            guard asks else { return false }
            let report = try ConfigurationCheck.run(config: config, candidate: nil)
            var conversation = AccountConversation(
                name: stated, description: description, offline: offline, origins: origins, signsIn: login,
                replaces: replace, registers: registration.register, config: config,
                calls: try daemon.calls(interruption),
                questions: Questions(interruption: interruption, ending: "No account was added."))
            try conversation.run((report["accounts"]?.array ?? []).compactMap { $0["name"]?.string })
            stated = conversation.name
            description = conversation.description
            // The conversation has asked the provider already, if that was possible.
            offline = true
            (origins, login) = (conversation.origins, conversation.signsIn)
            registration.register = conversation.registers
            return conversation.hasShownURIs
        } catch {
            Failure(error, account: stated).show()
            throw ExitCode(ExitStatus.of(error))
        }
    }

    private mutating func write(showsURIs: Bool, showsNext: Bool) throws {
        var added: (checked: JSON, registered: RegisteredAccount?) = ([:], nil)
        var provider: JSON?
        var remains: String?
        let file: AccountFile
        do throws(RingbackError) {
            file = try AccountFile(name: name, configuration: config)
            try checkName(file)
            added =
                registration.register ? try addRegistered(file, &remains) : (try add(file, nil, &provider), nil)
        } catch {
            Failure(error, account: name).show()
            if let remains { Output.note(remains) }
            throw ExitCode(ExitStatus.of(error))
        }
        show(added.checked, added.registered, provider, file, showsURIs)
        try present(account: name) { () throws(RingbackError) in
            if origins {
                let usual = UsualOrigin.all(of: description.provider)
                let file = try ConfigurationFile(stated: config)
                for url in try UsualOrigin.add(usual, account: name, to: file) {
                    Output.note("Tools get its token for \(url)")
                }
            }
            try daemon.calls().reloadIfRunning()
        }
        if showsNext, !json.isWanted { showNext() }
    }

    /// Writes the file, has it checked, and keeps it; after a failure nothing is left.
    ///
    /// - Parameter provider: set to what was found at the provider, if it was asked.
    private mutating func add(
        _ file: AccountFile, _ registered: RegisteredAccount?, _ provider: inout JSON?
    ) throws(RingbackError) -> JSON {
        let checked = try check(file, registered)
        do throws(RingbackError) {
            var usual = description
            // A provider that has just registered the client was contacted already.
            if !offline, registered == nil {
                let found = try ProviderCheck.run(name, description, daemon.calls())
                provider = found.checks
                if found.checks != nil, description.hasSecret {
                    let client = try ProviderCheck.look(name, description, daemon.calls(), isClientOnly: true)
                    if let error = client.error { throw error }
                }
                usual.leaveOutOfflineAccess(found)
                usual.leaveOutSignIn(found)
                if usual.text(for: name) != description.text(for: name) {
                    file.discard()
                    try file.writeCandidate(usual.text(for: name))
                }
            }
            description = usual
            try file.keep(replacing: replace)
        } catch {
            file.discard()
            throw error
        }
        return checked
    }

    /// Writes the candidate and checks it. A candidate with mistakes is removed.
    private func check(_ file: AccountFile, _ registered: RegisteredAccount?) throws(RingbackError) -> JSON {
        try file.writeCandidate(description.text(for: name, registered: registered))
        do throws(RingbackError) {
            return try ConfigurationCheck.run(config: config, candidate: file)
        } catch {
            file.discard()
            throw error
        }
    }

    /// The file is checked before anything is registered. If it cannot be written afterwards, the registration is
    /// deleted.
    private mutating func addRegistered(
        _ file: AccountFile, _ remains: inout String?
    ) throws(RingbackError) -> (JSON, RegisteredAccount?) {
        let calls = try daemon.calls()
        // If no daemon runs, nothing is read from the user and nothing is sent to the provider.
        _ = try calls.call(.getStatus)
        var draft = description
        draft.clientID = AccountRegistration.standIn
        try checkDraft(draft, file)
        let registered = try registration.run(name, description, replacing: replace, calls)
        do throws(RingbackError) {
            var provider: JSON?
            return (try add(file, registered, &provider), registered)
        } catch {
            remains = registration.undo(registered, name, description, calls)
            throw error
        }
    }

    private func checkDraft(_ draft: AccountDescription, _ file: AccountFile) throws(RingbackError) {
        // The client's authentication method is not known before it is registered, and its secret does not exist yet.
        var draft = draft
        draft.clientAuthentication = nil
        try file.writeCandidate(draft.text(for: name))
        defer { file.discard() }
        _ = try ConfigurationCheck.run(config: config, candidate: file)
    }

    /// The name is free, or the account of that name may be replaced.
    private func checkName(_ file: AccountFile) throws(RingbackError) {
        let known = try ConfigurationCheck.run(config: config, candidate: nil)
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

    private func show(
        _ checked: JSON, _ registered: RegisteredAccount?, _ provider: JSON?, _ file: AccountFile,
        _ showsURIs: Bool
    ) {
        let account = ConfigurationCheck.account(name, in: checked)
        let uris = account.map(ConfigurationCheck.redirectURIs) ?? []
        var notes = account?["notes"]?.array?.compactMap(\.string) ?? []
        if !json.isWanted { notes += [account.flatMap(ConfigurationCheck.step)].compactMap { $0 } }
        guard !json.isWanted else {
            var object = JSONObject([
                .init("account", .string(name)), .init("file", .string(file.path)),
                .init("redirect_uris", .array(uris.map { .string($0) })),
                .init("notes", .array(notes.map { .string($0) })),
            ])
            object["registration"] = registered?.document
            object["provider_asked"] = .bool(provider != nil || registered != nil)
            object["checks"] = provider
            return Output.json(.object(object))
        }
        Output.line("Added the account \(name): \(file.path)")
        if let registered {
            AccountRegistration.show(registered, description)
            for note in notes { Output.note(Sanitizer.line(note, limit: 600)) }
            return
        }
        let isProject = account?["provider"]?.string == "supabase"
        let entered = ProviderChoice(description)?.entered(uris) ?? uris
        if !entered.isEmpty, !description.isSandbox, showsURIs {
            let place = isProject ? "Add to the project's redirect URLs:" : "Register at the provider, as redirect URI:"
            Output.line(place)
            for uri in entered { Output.line("  " + Sanitizer.line(uri, limit: 2_000)) }
            if entered.contains(where: { $0.contains("{port}") }) { Output.note(ProviderChoice.portNote) }
        }
        for note in notes { Output.note(Sanitizer.line(note, limit: 600)) }
    }

    /// A replaced account may hold a session, which a sign-in replaces only if that is asked for.
    private func showNext() {
        guard !description.needsNoSignIn else {
            return Output.note(
                "Nobody has to sign in. To put it into an AI tool: \(shown: "ringback mcp add-to TOOL \(name)")")
        }
        Output.note("Then run: \(shown: "ringback login \(name) \(replace ? "--again" : "" as ShownCommand)")")
    }
}
