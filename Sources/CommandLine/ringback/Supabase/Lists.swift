import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A kind of things that a project has about its user: one verb lists them, another one removes one by its id.
protocol UserResource {
    static var rows: UserResourceKind { get }

    init(reading json: JSON) throws(RingbackError)

    var cells: [String] { get }
}

struct UserResourceKind: Sendable {
    /// Also the member of the response.
    let name: String
    let list: CommandConfiguration
    let listing: Endpoint
    let remove: CommandConfiguration
    let removing: Endpoint
    let noun: String
    let columns: [String]
    let none: @Sendable (_ account: String) -> String
    /// Nil: the response is the list of those that are left, and is shown.
    var removed: (@Sendable (_ id: String) -> String)? = { "Removed \($0)" }

    func see(_ account: String) -> ShownCommand { ShownCommand("ringback supabase \(name) \(account)") }
}

extension UserResource {
    static func all(in answer: JSON) throws(RingbackError) -> [Self] {
        try answer.list(rows.name).map(Self.init(reading:))
    }

    static func show(_ answer: JSON, of account: String, _ json: JSONOption) throws(RingbackError) {
        try json.printList(answer, rows.name, rows.columns, none: rows.none(account)) { entry throws(RingbackError) in
            try Self(reading: entry).cells
        }
    }
}

struct ListVerb<Resource: UserResource>: AccountVerb {
    static var configuration: CommandConfiguration { Resource.rows.list }

    @OptionGroup var target: AccountOptions

    func run() throws {
        try Resource.show(daemon.calls().project(Resource.rows.listing, account), of: account, json)
    }
}

struct RemoveVerb<Resource: UserResource>: AccountVerb {
    static var configuration: CommandConfiguration { Resource.rows.remove }

    @OptionGroup var target: AccountOptions
    @Argument(help: "The \(Resource.rows.noun), as “supabase \(Resource.rows.name)” shows it.") var id: String

    func run() throws {
        let kind = Resource.rows
        let answer = try advisingList(kind.see(account), try daemon.calls().project(kind.removing, account, id))
        guard let removed = kind.removed else { return try Resource.show(answer, of: account, json) }
        json.print(answer, or: removed(Sanitizer.line(id)))
    }
}

/// The error for an unknown identifier gets the command that lists the right ones.
func advisingList(_ list: ShownCommand, _ call: @autoclosure () throws(RingbackError) -> JSON) throws(RingbackError)
    -> JSON
{ try advising("See: \(shown: list)", on: .validationFailed, "invalid_request", .notFound, call: try call()) }

extension Factor: UserResource {
    static let rows = UserResourceKind(
        name: "factors",
        list: CommandConfiguration(commandName: "factors", abstract: "List the user's second factors."),
        listing: .listFactors,
        remove: CommandConfiguration(
            commandName: "remove-factor", abstract: "Remove a second factor.",
            discussion: "Removing a verified one needs a session of the second level."),
        removing: .removeFactor, noun: "factor", columns: ["TYPE", "NAME", "STATUS", "SINCE", "ID"],
        none: { "There is no second factor. To add one: \(shown: "ringback supabase enroll \($0)")" })

    var cells: [String] {
        [kind.rawValue, name ?? phone ?? "-", isVerified ? "verified" : "unverified", createdAt.cell, id]
    }
}

extension Identity: UserResource {
    static let rows = UserResourceKind(
        name: "identities",
        list: CommandConfiguration(
            commandName: "identities", abstract: "List the user's identities: the linked providers' accounts."),
        listing: .listIdentities,
        remove: CommandConfiguration(
            commandName: "unlink", abstract: "Unlink a provider's account from the user.",
            discussion: "The last one cannot be unlinked: the user could not sign in any more."),
        removing: .unlinkIdentity, noun: "identity", columns: ["PROVIDER", "WHO", "LAST SIGN-IN", "ID"],
        none: { _ in "The user has no linked provider's account." }, removed: nil)

    var cells: [String] { [provider, email ?? "-", lastSignInAt.cell, id] }
}

extension Consent: UserResource {
    static let rows = UserResourceKind(
        name: "consents",
        list: CommandConfiguration(
            commandName: "consents", abstract: "List the OAuth clients that the user has allowed at the project.",
            discussion: "These are apps and AI tools that sign in with the project's own OAuth server."),
        listing: .listConsents,
        remove: CommandConfiguration(
            commandName: "revoke-consent", abstract: "Revoke what the user has allowed a client.",
            discussion: """
                The project ends the client's sessions of this user. The client has to ask the user before it can sign in \
                again. Its access tokens are valid until they expire.
                """),
        removing: .revokeConsent, noun: "client", columns: ["CLIENT", "SCOPES", "SINCE", "ID"],
        none: { _ in "The user has allowed no client." }, removed: { "Revoked the consent for \($0)" })

    var cells: [String] { [clientName ?? "-", scopes.joined(separator: " "), grantedAt.cell, clientID] }
}

extension Passkey: UserResource {
    static let rows = UserResourceKind(
        name: "passkeys", list: CommandConfiguration(commandName: "passkeys", abstract: "List the user's passkeys."),
        listing: .listPasskeys,
        remove: CommandConfiguration(
            commandName: "remove-passkey", abstract: "Remove a passkey: it cannot be used for sign-ins any more.",
            discussion: "If the user has a second factor, this needs a session of the second level."),
        removing: .removePasskey, noun: "passkey", columns: ["NAME", "SINCE", "LAST USED", "ID"],
        none: { "There is no passkey. To add one: \(shown: "ringback supabase register-passkey \($0)")" })

    var cells: [String] { [name ?? "-", createdAt.cell, lastUsedAt.cell, id] }
}

struct SupabaseRenamePasskey: AccountVerb {
    static let configuration = CommandConfiguration(commandName: "rename-passkey", abstract: "Rename a passkey.")

    @OptionGroup var target: AccountOptions
    @Argument(help: .value("id", "The passkey, as “supabase passkeys” shows it.")) var passkey: String
    @Argument(help: "Its name, 1 to 120 bytes.") var name: String

    func validate() throws { try require((1...120).contains(name.utf8.count), "A name has 1 to 120 bytes.") }

    func run() throws {
        let answer = try advisingList(
            Passkey.rows.see(account),
            try daemon.calls().project(.renamePasskey, account, passkey, body: ["friendly_name": name]))
        let known = try Passkey(reading: answer)
        json.print(answer, or: "\(Sanitizer.line(known.id)) is \(Sanitizer.line(known.name ?? name)) now.")
    }
}

struct SupabaseLink: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Link a provider's account to the user, in the browser or by an ID token.")

    @OptionGroup var target: AccountOptions
    @Option(name: .customLong("with"), help: .value("provider", "The provider, such as google.")) var upstream: String
    @Option(help: .value("scopes", "The scopes to request from the provider, separated by spaces.")) var scopes: String?

    @Option(help: .value("name=value", "An additional parameter for the provider's page; may be repeated."))
    var param: [String] = []

    @Flag(help: "Print the page's URL on the first line instead of opening a browser.") var noBrowser = false
    @Flag(help: "Replace another pending sign-in of the account.") var replace = false
    @Option(help: .value("seconds", "Seconds until it expires, 1 to 3600.")) var timeout: Int?
    @Option(help: .descriptor("an ID token, and open no browser,")) var idTokenFD: Int32?
    @Option(help: .descriptor("the ID token's raw nonce")) var nonceFD: Int32?
    @Option(help: .descriptor("the provider's access token")) var accessTokenFD: Int32?

    func validate() throws {
        try require(
            idTokenFD != nil || (nonceFD == nil && accessTokenFD == nil),
            "--nonce-fd and --access-token-fd belong to --id-token-fd.")
        try require(
            idTokenFD == nil || (!noBrowser && timeout == nil && scopes == nil && param.isEmpty),
            "With --id-token-fd there is nothing to open or to wait for.")
        try require((1...3_600).contains(timeout ?? 1), "--timeout must be 1 to 3600 seconds.")
        try SignInOptions.check(parameters: param)
        try SignInOptions.check([idTokenFD, nonceFD, accessTokenFD])
    }

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        var run = SignInRun(
            account: account, opensBrowser: !noBrowser, endpoint: .linkIdentity,
            fields: [
                "oauth_provider": upstream, "replace": replace ? true : nil, "scopes": scopes,
                "params": SignInOptions.request(param),
            ], timeout: timeout, printsJSON: json.isWanted)
        if idTokenFD != nil {
            try SignInOptions.addIDToken(
                to: &run.fields, from: idTokenFD, nonce: nonceFD, accessToken: accessTokenFD)
        }
        let linked = try run.finish(calls)
        json.print(linked, or: "Linked \(Sanitizer.line(upstream)) to \(account)")
    }
}
