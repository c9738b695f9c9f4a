internal import Glibc
public import OAuth
public import RingbackBase

extension SettingTable {
    /// The key that makes the account a service account, even with an error: it is meant as one. Nil for one that users
    /// sign in to.
    var serviceKey: String? { ["grant", "through"].first { isWritten($0) } }
}

struct ServiceReader {
    let table: SettingTable

    /// Keys that only make sense with a sign-in in a browser.
    private static let browserKeys = [
        "redirect_uri", "response_mode", "post_logout_redirect_uri", "authorization_params", "flow_timeout",
        "callback_peer_uids", "session_warnings", "browser", "login_hint", "interactive",
    ]

    /// The claims of a self-issued assertion.
    private static let issuedKeys = ["assertion_subject", "assertion_audience"]

    /// Nil for an account without `grant`, or with an error in it.
    func read(of client: ClientReader.Client, at provider: AccountProvider?) -> ServiceConfiguration? {
        if table.serviceKey == "through" { return readThrough(client) }
        guard let grant: ServiceGrantType = table.word("grant") else {
            if !table.isWritten("grant") {
                table.refuse(
                    anyOf: ["assertion_file", "subject_token_type", "audience", "resource"] + ServiceReader.issuedKeys,
                    "is only for service accounts (with grant)")
            }
            return nil
        }
        if case .supabase? = provider {
            table.refuse("grant", "is for OAuth providers, not for provider = \"supabase\"")
            return nil
        }
        table.refuse(
            anyOf: ServiceReader.browserKeys,
            "is only for sign-ins in a browser, not with grant = \"\(grant.rawValue)\"")
        if grant == .clientCredentials, client.authentication == ClientAuthentication.none {
            table.refuse(
                "grant",
                "\"client_credentials\" needs client authentication: set client_secret_file, "
                    + "client_secret_credential, client_secret_command or client_key_file")
        }
        return ServiceConfiguration(
            grant: grant, through: nil, assertionFile: readAssertionFile(of: grant),
            subjectTokenType: readSubjectType(of: grant), issued: readIssuedAssertion(of: grant),
            audience: table.printable("audience"), resource: readResource())
    }

    /// An account that gets its tokens through the sign-in of another one.
    private func readThrough(_ client: ClientReader.Client) -> ServiceConfiguration? {
        table.refuse(
            anyOf: ServiceReader.browserKeys + ["assertion_file", "subject_token_type", "audience"]
                + ServiceReader.issuedKeys,
            "has no meaning with through: another account's sign-in is used")
        if !table.isWritten("client_id") {
            table.refuse("through", "needs client_id: the client at the server's authorization server")
        }
        return table.string("through").map { name in
            ServiceConfiguration(
                grant: .jwtBearer, through: name, assertionFile: nil, subjectTokenType: .jwt,
                issued: SelfIssuedAssertion(), audience: nil, resource: nil)
        }
    }

    private func readAssertionFile(of grant: ServiceGrantType) -> String? {
        guard grant.needsAssertion else {
            if table.has("assertion_file") {
                let grants = ServiceGrantType.allCases.filter(\.needsAssertion).map { "\"\($0.rawValue)\"" }
                table.refuse("assertion_file", "is for the grants \(grants.joined(separator: ", "))")
            }
            return nil
        }
        guard table.has("assertion_file") else {
            if !table.isWritten("assertion_file") {
                table.refuse("grant", "\"\(grant.rawValue)\" needs assertion_file with the token to exchange")
            }
            return nil
        }
        guard let path = table.filePath("assertion_file") else { return nil }
        // The platform may create the file later. It is read at each use, so a missing file is no error here.
        guard !AccountConfiguration.awaitsAssertion(at: path) else { return path }
        table.reporting("assertion_file") { () throws(Mistake) in
            _ = try AccountConfiguration.assertion(at: path, for: grant, user: table.place.user)
        }
        return path
    }

    private func readIssuedAssertion(of grant: ServiceGrantType) -> SelfIssuedAssertion {
        let word = "\"\(ServiceGrantType.selfIssuedJWT.rawValue)\""
        if grant != .selfIssuedJWT {
            table.refuse(anyOf: ServiceReader.issuedKeys, "is for grant = \(word)")
        } else if !table.isWritten("client_key_file") {
            let reason = "\(word) needs client_key_file, with the key that signs the assertion"
            if let secret = ClientReader.secretKeys.first(where: table.has) {
                table.refuse(secret, "is not sent: grant = \(reason)")
            } else {
                table.refuse("grant", reason)
            }
        }
        return SelfIssuedAssertion(
            subject: table.printable("assertion_subject"), audience: table.printable("assertion_audience"))
    }

    private func readSubjectType(of grant: ServiceGrantType) -> ExchangedTokenType {
        guard let written = table.string("subject_token_type") else { return .jwt }
        if grant != .tokenExchange {
            table.refuse("subject_token_type", "is for grant = \"token_exchange\"")
        } else if ExchangedTokenType(parsing: written) == nil {
            table.refuse(
                "subject_token_type",
                "must be one of \(ExchangedTokenType.words.joined(separator: ", ")), or a URI of the provider's own")
        }
        return ExchangedTokenType(parsing: written) ?? .jwt
    }

    /// RFC 8707 section 2: an absolute URI without a fragment.
    private func readResource() -> String? {
        table.text("resource", "must be an absolute URI without a fragment") { resource in
            let scheme = resource.prefix { $0 != ":" }
            return SettingTable.isPrintable(resource) && !resource.contains(" ") && !resource.contains("#")
                && !scheme.isEmpty && scheme.count < resource.count
        }
    }
}

public struct ServiceConfiguration: Sendable, Equatable {
    public let grant: ServiceGrantType
    /// The account whose user the assertion is about; nil for the token of a file.
    public let through: String?
    /// A path that ``AccountConfiguration/readAssertion(user:)`` reads at each use; nil if the client's own credentials
    /// suffice.
    public let assertionFile: String?
    /// The type of the file's token, for a token exchange.
    public let subjectTokenType: ExchangedTokenType
    /// For `self_issued_jwt`.
    public let issued: SelfIssuedAssertion
    public let audience: String?
    /// RFC 8707.
    public let resource: String?
}

extension AccountConfiguration {
    /// The maximum size in bytes: a token of 64 KiB and white space around it.
    private static let maxAssertion = 66_000

    /// The current content of the assertion file; nil for an account without one. The file is checked each time, since
    /// the platform may replace it. It must belong to the user, unless it is root's. Blocks for a moment.
    public func readAssertion(user: UInt32) throws(ConfigurationError) -> Assertion? {
        guard let service, let path = service.assertionFile else { return nil }
        return try reading("assertion_file") { () throws(Mistake) in
            try AccountConfiguration.assertion(at: path, for: service.grant, user: user)
        }
    }

    /// True if the file does not exist yet or is empty.
    static func awaitsAssertion(at path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return errno == ENOENT }
        return status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    static func assertion(at path: String, for grant: ServiceGrantType, user: UInt32) throws(Mistake) -> Assertion {
        let bytes = try ClientSecretFile.read(path, user: user, maxSize: maxAssertion)
        do throws(OAuthError) {
            return try grant.assertion(in: Secret(bytes: bytes))
        } catch {
            throw Mistake("the file \(FileTrust.quoted(path)) \(error.message)")
        }
    }

    public var clientSecretCredential: String? {
        if case .credential(let name) = clientSecret { name } else { nil }
    }
}

/// Secrets in a directory that the service manager or another starter has created: `$CREDENTIALS_DIRECTORY` of
/// systemd.exec(5), or a read-only mount of a container.
public enum CredentialFile {
    /// True for a credential's name: 1 to 255 letters, digits and `._-`, but not `.` or `..`.
    public static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
    }

    /// The name in `$CREDENTIALS_DIRECTORY/NAME`; nil for another path. Only the daemon knows the directory, so other
    /// programs cannot read it.
    static func name(in path: String) -> String? {
        for prefix in ["$CREDENTIALS_DIRECTORY/", "${CREDENTIALS_DIRECTORY}/"] where path.hasPrefix(prefix) {
            return String(path.dropFirst(prefix.count))
        }
        return nil
    }

    /// The credential without line ends at its end. Throws if it is missing, open to others, or does not belong to the
    /// user or root.
    public static func read(_ name: String, in directory: String, user: UInt32) throws(ConfigurationError) -> Secret {
        let path = "\(directory)/\(name)"
        do throws(Mistake) {
            return Secret(bytes: ClientSecretFile.line(try ClientSecretFile.read(path, user: user)))
        } catch {
            throw ConfigurationError(file: path, message: error.message, cause: error.cause)
        }
    }
}

/// The credentials that a daemon would have if it were started like this program.
public struct GivenCredentials: Sendable, Equatable {
    /// `$CREDENTIALS_DIRECTORY`
    public let directory: String
    /// Names of credentials that are passed through descriptors and need no file.
    public let names: Set<String>

    public init(directory: String, names: Set<String>) {
        self.directory = directory
        self.names = names
    }

    /// - Parameter isSecret: it is a client secret, and not a key.
    func mistake(of name: String, user: UInt32, isSecret: Bool) -> Mistake? {
        guard !names.contains(name) else { return nil }
        do throws(ConfigurationError) {
            let content = try CredentialFile.read(name, in: directory, user: user)
            let place = "the credential \(FileTrust.quoted(name))"
            guard !content.isEmpty else { return Mistake("\(place) is empty") }
            guard isSecret, let found = ClientSecretFile.controlCharacter(in: content.revealedBytes()) else {
                return nil
            }
            return Mistake("\(place) has more than one line or a control character: \(found)")
        } catch {
            return Mistake(error.message, error.cause)
        }
    }
}
