internal import HTTPMessages
internal import OAuth

/// Reads a service account: what its grant needs, and which keys cannot be combined with it.
struct ServiceReader {
    private var account: AccountTable
    private var table: TOMLTableReader { account.members }

    /// Keys that only make sense with a sign-in in a browser.
    private static let browserKeys = [
        "redirect_uri", "response_mode", "post_logout_redirect_uri", "authorization_params", "flow_timeout",
        "callback_peer_uids", "session_warnings",
    ]

    /// Nil for an account without `grant`, or with an error in it. Reports what is wrong at the account.
    static func read(
        _ account: inout AccountTable, of client: ClientReader.Client, at provider: AccountProvider?
    ) -> ServiceConfiguration? {
        var reader = ServiceReader(account: account)
        defer { account = reader.account }
        return reader.read(of: client, at: provider)
    }

    private mutating func read(
        of client: ClientReader.Client, at provider: AccountProvider?
    ) -> ServiceConfiguration? {
        guard let grant = table.string("grant").flatMap(ServiceGrantType.init) else {
            for key in ["assertion_file", "subject_token_type", "audience", "resource"]
            where table.has(key) && !account.isService {
                account.refuse(key, "is only for service accounts (with grant)")
            }
            return nil
        }
        if case .supabase? = provider {
            account.refuse("grant", "is for OAuth providers, not for provider = \"supabase\"")
            return nil
        }
        for key in ServiceReader.browserKeys where table.has(key) {
            account.refuse(key, "is only for sign-ins in a browser, not with grant = \"\(grant.rawValue)\"")
        }
        if grant == .clientCredentials, client.authentication == ClientAuthentication.none {
            account.refuse(
                "grant",
                "\"client_credentials\" needs client authentication: set client_secret_file, "
                    + "client_secret_credential, client_secret_command or client_key_file")
        }
        return ServiceConfiguration(
            grant: grant, assertionFile: readAssertionFile(of: grant), subjectTokenType: readSubjectType(of: grant),
            audience: readAudience(), resource: readResource())
    }

    private mutating func readAssertionFile(of grant: ServiceGrantType) -> String? {
        guard grant.needsAssertion else {
            if table.has("assertion_file") {
                let grants = ServiceGrantType.allCases.filter(\.needsAssertion).map { "\"\($0.rawValue)\"" }
                account.refuse("assertion_file", "is for the grants \(grants.joined(separator: ", "))")
            }
            return nil
        }
        guard let written = table.string("assertion_file") else {
            if !account.isWritten("assertion_file") {
                account.refuse("grant", "\"\(grant.rawValue)\" needs assertion_file with the token to exchange")
            }
            return nil
        }
        guard let path = account.expand("assertion_file", written) else { return nil }
        // The platform may create the file later. It is read at each use, so a missing file is no error here.
        if !AccountConfiguration.awaitsAssertion(at: path),
            case .failure(let mistake) = AccountConfiguration.assertion(
                at: path, for: grant, user: account.place.user)
        {
            account.refuse("assertion_file", mistake)
        }
        return path
    }

    private mutating func readSubjectType(of grant: ServiceGrantType) -> ExchangedTokenType {
        guard let written = table.string("subject_token_type") else { return .jwt }
        if grant != .tokenExchange {
            account.refuse("subject_token_type", "is for grant = \"token_exchange\"")
        } else if ExchangedTokenType(parsing: written) == nil {
            account.refuse(
                "subject_token_type",
                "must be one of \(ExchangedTokenType.words.joined(separator: ", ")), or a URI of the provider's own")
        }
        return ExchangedTokenType(parsing: written) ?? .jwt
    }

    private mutating func readAudience() -> String? {
        guard let audience = table.string("audience") else { return nil }
        if !AccountTable.isPrintable(audience) { account.refuse("audience", "must be printable ASCII") }
        return audience
    }

    /// RFC 8707 section 2: an absolute URI without a fragment.
    private mutating func readResource() -> String? {
        guard let resource = table.string("resource") else { return nil }
        let scheme = resource.prefix { $0 != ":" }
        if !AccountTable.isPrintable(resource) || resource.contains(" ") || resource.contains("#")
            || scheme.isEmpty || scheme.count == resource.count
        {
            account.refuse("resource", "must be an absolute URI without a fragment")
        }
        return resource
    }
}
