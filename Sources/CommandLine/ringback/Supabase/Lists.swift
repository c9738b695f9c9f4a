import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

// What a project has about a user: each kind with the verbs that list and remove it.

/// A verb that removes something of the user by its id, which another verb lists.
protocol SupabaseRemoval: AccountVerb {
    static var endpoint: Endpoint { get }
    /// The command that lists identifiers, without the account.
    static var list: ShownCommand { get }
    var id: String { get }

    func show(_ answer: JSON) throws(RingbackError)
}

extension SupabaseRemoval {
    func show(_ answer: JSON) throws(RingbackError) { json.print(answer, or: "Removed \(Sanitizer.line(id))") }

    func run() throws {
        let hint = IdentifierHint(see: ShownCommand("\(Self.list) \(account)"))
        try show(try hint.explaining(try daemon.calls().project(Self.endpoint, account, id)))
    }
}

// MARK: Factors

struct SupabaseFactors: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "factors", abstract: "List the user's second factors.")

    @OptionGroup var target: AccountOptions

    func run() throws {
        try json.printList(
            daemon.calls().project(.listFactors, account), "factors", ["TYPE", "NAME", "STATUS", "SINCE", "ID"],
            none: "There is no second factor. To add one: \(shown: "ringback supabase enroll \(account)")"
        ) { entry throws(RingbackError) in
            let factor = try Factor(reading: entry)
            let status = factor.isVerified ? "verified" : "unverified"
            return [
                factor.kind.rawValue, factor.name ?? factor.phone ?? "-", status, factor.createdAt.cell, factor.id,
            ]
        }
    }

    static func all(of account: String, _ calls: BrokerCalls) throws(RingbackError) -> [Factor] {
        var factors: [Factor] = []
        for entry in try calls.project(.listFactors, account).list("factors") {
            factors.append(try Factor(reading: entry))
        }
        return factors
    }
}

struct SupabaseRemoveFactor: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "remove-factor", abstract: "Remove a second factor.",
        discussion: "Removing a verified one needs a session of the second level.")
    static let endpoint = Endpoint.removeFactor
    static let list: ShownCommand = "ringback supabase factors"

    @OptionGroup var target: AccountOptions

    @Argument(help: "The factor, as “supabase factors” shows it.")
    var id: String
}

// MARK: Identities

struct SupabaseIdentities: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "identities", abstract: "List the user's identities: the linked providers' accounts.")

    @OptionGroup var target: AccountOptions

    func run() throws { try SupabaseIdentities.show(daemon.calls().project(.listIdentities, account), json) }

    static func show(_ answer: JSON, _ json: JSONOption) throws(RingbackError) {
        try json.printList(
            answer, "identities", ["PROVIDER", "WHO", "LAST SIGN-IN", "ID"],
            none: "The user has no linked provider's account."
        ) { entry throws(RingbackError) in
            let identity = try Identity(reading: entry)
            return [identity.provider, identity.email ?? "-", identity.lastSignInAt.cell, identity.id]
        }
    }
}

struct SupabaseUnlink: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "unlink", abstract: "Unlink a provider's account from the user.",
        discussion: "The last one cannot be unlinked: the user could not sign in any more.")
    static let endpoint = Endpoint.unlinkIdentity
    static let list: ShownCommand = "ringback supabase identities"

    @OptionGroup var target: AccountOptions

    @Argument(help: "The identity, as “supabase identities” shows it.")
    var id: String

    func show(_ answer: JSON) throws(RingbackError) { try SupabaseIdentities.show(answer, json) }
}

// MARK: Consents

struct SupabaseConsents: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "consents", abstract: "List the OAuth clients that the user has allowed at the project.",
        discussion: "These are apps and AI tools that sign in with the project's own OAuth server.")

    @OptionGroup var target: AccountOptions

    func run() throws {
        try json.printList(
            daemon.calls().project(.listConsents, account), "consents", ["CLIENT", "SCOPES", "SINCE", "ID"],
            none: "The user has allowed no client."
        ) { entry throws(RingbackError) in
            let consent = try Consent(reading: entry)
            let scopes = consent.scopes.joined(separator: " ")
            return [consent.clientName ?? "-", scopes, consent.grantedAt.cell, consent.clientID]
        }
    }
}

struct SupabaseRevokeConsent: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "revoke-consent", abstract: "Revoke what the user has allowed a client.",
        discussion: """
            The project ends the client's sessions of this user. The client has to ask the user before it can sign in \
            again. Its access tokens are valid until they expire.
            """)
    static let endpoint = Endpoint.revokeConsent
    static let list: ShownCommand = "ringback supabase consents"

    @OptionGroup var target: AccountOptions

    @Argument(help: "The client, as “supabase consents” shows it.")
    var id: String

    func show(_ answer: JSON) throws(RingbackError) {
        json.print(answer, or: "Revoked the consent for \(Sanitizer.line(id))")
    }
}

// MARK: Passkeys

struct SupabasePasskeys: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "passkeys", abstract: "List the user's passkeys.")

    @OptionGroup var target: AccountOptions

    func run() throws {
        try json.printList(
            daemon.calls().project(.listPasskeys, account), "passkeys", ["NAME", "SINCE", "LAST USED", "ID"],
            none: "There is no passkey. To add one: \(shown: "ringback supabase register-passkey \(account)")"
        ) { entry throws(RingbackError) in
            let passkey = try Passkey(reading: entry)
            return [passkey.name ?? "-", passkey.createdAt.cell, passkey.lastUsedAt.cell, passkey.id]
        }
    }
}

struct SupabaseRenamePasskey: AccountVerb {
    static let configuration = CommandConfiguration(commandName: "rename-passkey", abstract: "Rename a passkey.")

    @OptionGroup var target: AccountOptions

    @Argument(help: ArgumentHelp("The passkey, as “supabase passkeys” shows it.", valueName: "id"))
    var passkey: String

    @Argument(help: "Its name, 1 to 120 bytes.")
    var name: String

    func validate() throws {
        try require((1...120).contains(name.utf8.count), "A name has 1 to 120 bytes.")
    }

    func run() throws {
        let hint = IdentifierHint(see: ShownCommand("ringback supabase passkeys \(account)"))
        let answer = try hint.explaining(
            try daemon.calls().project(.renamePasskey, account, passkey, body: ["friendly_name": name]))
        let known = try Passkey(reading: answer)
        json.print(answer, or: "\(Sanitizer.line(known.id)) is \(Sanitizer.line(known.name ?? name)) now.")
    }
}

struct SupabaseRemovePasskey: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "remove-passkey", abstract: "Remove a passkey: it cannot be used for sign-ins any more.",
        discussion: "If the user has a second factor, this needs a session of the second level.")
    static let endpoint = Endpoint.removePasskey
    static let list: ShownCommand = "ringback supabase passkeys"

    @OptionGroup var target: AccountOptions

    @Argument(help: "The passkey, as “supabase passkeys” shows it.")
    var id: String
}

struct SupabaseLink: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Link a provider's account to the user, in the browser or by an ID token.")

    @OptionGroup var target: AccountOptions

    @Option(name: .customLong("with"), help: ArgumentHelp("The provider, such as google.", valueName: "provider"))
    var upstream: String

    @Option(help: ArgumentHelp("The scopes to request from the provider, separated by spaces.", valueName: "scopes"))
    var scopes: String?

    @Option(
        name: .customLong("param"),
        help: ArgumentHelp(
            "An additional parameter for the provider's page; may be repeated.", valueName: "name=value"))
    var parameters: [String] = []

    @Flag(help: "Print the page's URL on the first line instead of opening a browser.")
    var noBrowser = false

    @Flag(help: "Replace another pending sign-in of the account.")
    var replace = false

    @Option(help: ArgumentHelp("Seconds until it expires, 1 to 3600.", valueName: "seconds"))
    var timeout: Int?

    @Option(name: .customLong("id-token-fd"), help: SignInOptions.descriptor("an ID token, and open no browser,"))
    var idTokenDescriptor: Int32?

    @Option(name: .customLong("nonce-fd"), help: SignInOptions.descriptor("the ID token's raw nonce"))
    var nonceDescriptor: Int32?

    @Option(name: .customLong("access-token-fd"), help: SignInOptions.descriptor("the provider's access token"))
    var accessTokenDescriptor: Int32?

    func validate() throws {
        try require(
            idTokenDescriptor != nil || (nonceDescriptor == nil && accessTokenDescriptor == nil),
            "--nonce-fd and --access-token-fd belong to --id-token-fd.")
        try require(
            idTokenDescriptor == nil || (!noBrowser && timeout == nil && scopes == nil && parameters.isEmpty),
            "With --id-token-fd there is nothing to open or to wait for.")
        if let timeout, !(1...3_600).contains(timeout) { throw ValidationError("--timeout must be 1 to 3600 seconds.") }
        try SignInOptions.check(parameters: parameters)
        try SignInOptions.check([idTokenDescriptor, nonceDescriptor, accessTokenDescriptor])
    }

    func run() throws {
        let interruption = try Signals.interruption()
        var run = SignInRun(account: account, opensBrowser: !noBrowser)
        run.endpoint = .linkIdentity
        run.timeout = timeout
        run.fields = JSONObject(texts: ["oauth_provider": upstream])
        if replace { run.fields["replace"] = true }
        SignInOptions.addRequest(to: &run.fields, scopes: scopes, parameters)
        if idTokenDescriptor != nil {
            try SignInOptions.addIDToken(
                to: &run.fields, SecretInput(interruption: interruption), from: idTokenDescriptor,
                nonce: nonceDescriptor, accessToken: accessTokenDescriptor)
        }
        run.began = { [noBrowser, json] flow, document in
            if json.isWanted {
                Output.json(document)
            } else if noBrowser, let url = flow.authorizationURL {
                Output.line(Sanitizer.line(url, limit: 16_384))
            }
        }
        let linked = try run.finish(try daemon.calls(interruption))
        json.print(linked, or: "Linked \(Sanitizer.line(upstream)) to \(account)")
    }
}
