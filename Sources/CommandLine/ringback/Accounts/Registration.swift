import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct RegisteredAccount {
    let clientID: String
    let authentication: String
    let document: JSON

    init(reading document: JSON) throws(RingbackError) {
        guard let clientID = document["client_id"]?.string,
            let authentication = document["token_endpoint_auth_method"]?.string
        else { throw RingbackError(.badResponse, "The daemon's response to the registration has no client_id.") }
        self.clientID = clientID
        self.authentication = authentication
        self.document = document
    }

    var hasSecret: Bool { document.isTrue("client_secret_registered") }
    var scopes: [String] { document.text("scopes").split(separator: " ").map(String.init) }
    var redirectURIs: [String] { document.texts("redirect_uris") }
    var requestedRedirectURIs: [String] { document.texts("redirect_uris_requested") }
}

/// The client of an account that is registered anew. If Ringback registered it, it is deleted at its provider.
struct FormerClient {
    let clientID: String
    private let issuer: String
    private let certificates: String?

    /// Nil if the file, which `account add` wrote, has no client of an issuer.
    init?(in path: String) {
        let lines = String(decoding: ((try? Files.contents(of: path)) ?? nil) ?? [], as: UTF8.self).split(
            separator: "\n")
        func value(_ key: String) -> String? {
            let line = lines.first { $0.hasPrefix(key + " = ") }
            return line.flatMap { try? JSON(parsing: Array($0.dropFirst(key.count + 3).utf8)).string }
        }
        guard let clientID = value("client_id"), let issuer = value("issuer") else { return nil }
        (self.clientID, self.issuer, certificates) = (clientID, issuer, value("ca_file"))
    }

    func delete(_ name: String, _ calls: BrokerCalls) {
        do throws(RingbackError) {
            let query: [(String, String?)] = [
                ("issuer", issuer), ("client_id", clientID), ("ca_file", certificates),
            ]
            // Nothing is found if Ringback did not register it.
            let deleted = try ignoring(
                .notFound, call: calls.call(.deleteRegistration, [name], query: query, timeout: .seconds(60)))
            if let deleted { Output.note(AccountHoldings.text(ofDeleted: deleted, "former client")) }
        } catch {
            Output.note(
                "The former client \(Sanitizer.line(clientID)) stays registered: \(Sanitizer.line(error.detail, limit: 400))"
            )
        }
    }
}

/// Registers the client at the provider (RFC 7591), for `account add --register`. The daemon does it and keeps the
/// secrets.
struct AccountRegistration: ParsableArguments {
    @Flag(help: "Have the provider register the client (RFC 7591); the daemon must be running.") var register = false

    @Option(
        help: .value(
            "fd",
            "The descriptor from which to read the initial access token that some providers require; 0 is standard "
                + "input. The token is never an argument."))
    var initialAccessTokenFD: Int32?

    func check(_ description: AccountDescription) throws {
        guard register else {
            return try require(initialAccessTokenFD == nil, "--initial-access-token-fd belongs to --register.")
        }
        try require(
            description.mcp == nil, "--register is not for --mcp: the client is registered at the first sign-in.")
        try require(description.grant == nil, "--register is for sign-ins, not for --grant.")
        try require(
            description.issuer != nil, "--register needs --issuer: where to register is in the issuer's metadata.")
        let given = [
            ("--client-id", description.clientID), ("--client-secret-file", description.clientSecretFile),
            ("--client-key-file", description.clientKeyFile), ("--credential", description.credential),
            ("--client-secret-fd", description.clientSecretFD.map { String($0) }),
        ]
        if let (option, _) = given.first(where: { $0.1 != nil }) {
            throw ValidationError("\(option) is for a client that is registered already: leave it or --register out.")
        }
        try require(
            initialAccessTokenFD.map { $0 == 0 || $0 > 2 } ?? true,
            "--initial-access-token-fd must be the number of a descriptor that can be read.")
    }

    /// Stands for the client id while the account is checked before the registration, so that a mistake is found before
    /// the provider has registered anything.
    static let standIn = "not-registered-yet"

    func run(
        _ name: String, _ description: AccountDescription, replacing replaces: Bool, _ calls: BrokerCalls
    ) throws(RingbackError) -> RegisteredAccount {
        let body: JSONObject = [
            "account": name, "issuer": description.issuer ?? "",
            "scopes": description.usualScopes.joined(separator: " "), "redirect_uri": description.redirectURI,
            "token_endpoint_auth_method": description.clientAuthentication, "ca_file": description.absoluteCAFile,
            "replace": replaces ? true : nil, "initial_access_token": try readToken(),
        ]
        return try explaining(
            RegisteredAccount(reading: calls.call(.register, body: .object(body), timeout: .seconds(120)))
        ) { AccountRegistration.explained($0, name) }
    }

    private func readToken() throws(RingbackError) -> String? {
        guard let initialAccessTokenFD else { return nil }
        guard let token = try SecretInput.readOptional("initial access token", from: initialAccessTokenFD) else {
            throw RingbackError(.cancelled, "No initial access token was read. Nothing was registered.")
        }
        guard token.utf8.count <= 8_192, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw RingbackError(.systemError, "The initial access token is too long, or has characters that none has.")
        }
        return token
    }

    /// Deletes the registration, since the account could not be written. Returns what happened, as text for the user.
    func undo(
        _ registered: RegisteredAccount, _ name: String, _ description: AccountDescription, _ calls: BrokerCalls
    ) -> String {
        let issuer = description.issuer ?? ""
        let query = [("issuer", issuer), ("client_id", registered.clientID), ("ca_file", description.absoluteCAFile)]
        let client = Sanitizer.line(registered.clientID)
        do throws(RingbackError) {
            let answer = try calls.call(.deleteRegistration, [name], query: query, timeout: .seconds(60))
            return answer.isTrue("deleted_at_provider")
                ? "The registration of the client \(client) was deleted again."
                : "The client \(client) stays registered at \(issuer), which gave no token to delete it with."
        } catch {
            let target = (try? RequestTarget.of(.deleteRegistration, [name], query: query)) ?? ""
            return "The client \(client) stays registered at \(issuer): it could not be deleted "
                + "(\(Sanitizer.line(error.detail, limit: 400))) Its deletion token is in the vault. To use it: DELETE \(target)"
        }
    }

    private static func explained(_ error: RingbackError, _ name: String) -> RingbackError {
        let steps = [
            "invalid_redirect_uri": "If it requires a redirect URI with a port, choose one: --redirect-uri "
                + "http://127.0.0.1:8400/callback/\(name)",
            "invalid_client_metadata":
                "If it requires a client with a secret: --client-authentication client_secret_basic",
            "invalid_token": "If it requires an initial access token: --initial-access-token-fd 0",
            "access_denied": "It may register clients only by hand; then add the account with --client-id.",
        ]
        let other = error["setting"]?.string == "client_id" ? "Then add the account with --client-id." : nil
        return error.with(advice: error.providerCode.flatMap { steps[$0] } ?? other)
    }

    /// The command that registers the client of an account again, with the account's present settings. Nil if that does
    /// not help, or the daemon does not say it.
    static func repetition(of name: String, _ members: JSONObject) -> ShownCommand? {
        guard RequestTarget.isAccountName(name), let terms = members["registration"],
            let issuer = terms["issuer"]?.string
        else { return nil }
        let scopes = terms.texts("scopes")
        var options: [(String, String?)] =
            scopes == AccountDescription.scopesOfIssuer ? [] : scopes.map { ("--scope", $0) }
        options += [
            ("--redirect-uri", terms["redirect_uri"]?.string),
            ("--client-authentication", terms["client_authentication"]?.string),
            ("--response-mode", terms["response_mode"]?.string), ("--ca-file", terms["ca_file"]?.string),
        ]
        let words = options.compactMap { option in option.1.map { "\(option.0)=\($0)" } }
        return ShownCommand(
            "ringback account add \(name) --issuer \(issuer) --register --replace \(ShownCommand(words: words))")
    }

    static func show(_ registered: RegisteredAccount, _ description: AccountDescription) {
        let issuer = Sanitizer.line(description.issuer ?? "", limit: 2_000)
        Output.line("Registered the client \(Sanitizer.line(registered.clientID, limit: 1_100)) at \(issuer)")
        Output.line("with the redirect URI:")
        for uri in registered.redirectURIs { Output.line("  " + Sanitizer.line(uri, limit: 2_000)) }
        for uri in registered.requestedRedirectURIs where !registered.redirectURIs.contains(uri) {
            Output.note("The provider did not register \(Sanitizer.line(uri, limit: 2_000)): it may reject sign-ins.")
        }
        let left = description.usualScopes.filter { !registered.scopes.contains($0) }
        if !left.isEmpty {
            Output.note(
                "The provider registered no client with: \(Sanitizer.line(left.joined(separator: " "), limit: 600))")
        }
        if description.redirectURI?.contains("{port}") == true {
            Output.note(
                "(Sign-ins use it with a free port, see RFC 8252 section 7.3. If the provider rejects that, "
                    + "register again with a fixed one: leave --redirect-uri out.)")
        }
        if let end = registered.document["client_secret_expires_at"]?.integer {
            Output.note(
                "The client's secret expires \(TimeText.dateAndTime(end)); then the client has to be registered again.")
        }
        if registered.document["managed"]?.bool == false {
            Output.note("The provider sent no token to delete the registration with.")
        }
    }
}

struct ClientMetadata: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-metadata", abstract: "Print a client-id metadata document for hosting.",
        discussion: """
            An authorization server that supports such documents takes the URL of the document as the client id, so that \
            no client has to be registered. Host the document at that URL, and set client_id_metadata_url of the \
            accounts at MCP servers to it.
            """)

    @Argument(help: .value("url", "The https URL at which the document will be.")) var url: String

    @Option(
        name: .customLong("redirect-uri"),
        help: .value("uri", "A redirect URI of one account, beside the usual ones; may be repeated."))
    var redirectURIs: [String] = []

    func validate() throws {
        guard let parsed = try? WebURL(parsing: url), parsed.scheme == "https", parsed.fragment == nil,
            parsed.path.utf8.count > 1
        else { throw ValidationError("The URL is https, with a path and without a fragment.") }
    }

    func run() { Output.json(ClientMetadata.document(url, redirectURIs)) }

    static func document(_ url: String, _ more: [String] = []) -> JSON {
        let uris =
            ["http://127.0.0.1/callback", "http://localhost/callback"]
            + more.map { $0.replacing(":{port}", with: "") }
        return [
            "client_id": .string(url), "client_name": "Ringback", "application_type": "native",
            // RFC 8252 section 7.3: any port of a loopback redirect URI is accepted.
            "redirect_uris": .array(uris.map { .string($0) }), "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"], "token_endpoint_auth_method": "none",
        ]
    }
}
