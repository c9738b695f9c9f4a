internal import HTTPMessages
internal import OAuth

/// Service accounts: what their grant needs, and which keys cannot be combined with it.
extension AccountReader {
    /// Keys that only make sense with a sign-in in a browser.
    private static let browserKeys = [
        "redirect_uri", "response_mode", "post_logout_redirect_uri", "authorization_params", "flow_timeout",
        "callback_peer_uids", "session_warnings",
    ]

    /// True if the account is meant as a service account, even if it has errors.
    var isService: Bool { isWritten("grant") }

    mutating func readService(of client: Client, at provider: AccountProvider?) -> ServiceConfiguration? {
        guard let grant = table.string("grant").flatMap(ServiceConfiguration.Grant.init) else {
            for key in ["assertion_file", "subject_token_type", "audience", "resource"]
            where table.has(key) && !isService {
                refuse(key, "is only for service accounts (with grant)")
            }
            return nil
        }
        if case .supabase? = provider {
            refuse("grant", "is for OAuth providers, not for provider = \"supabase\"")
            return nil
        }
        for key in AccountReader.browserKeys where table.has(key) {
            refuse(key, "is only for sign-ins in a browser, not with grant = \"\(grant.rawValue)\"")
        }
        if grant == .clientCredentials, client.authentication == ClientAuthentication.none {
            refuse(
                "grant",
                "\"client_credentials\" needs client authentication: set client_secret_file, "
                    + "client_secret_credential, client_secret_command or client_key_file")
        }
        return ServiceConfiguration(
            grant: grant, assertionFile: readAssertionFile(of: grant), subjectTokenType: readSubjectType(of: grant),
            audience: readAudience(), resource: readResource())
    }

    private mutating func readAssertionFile(of grant: ServiceConfiguration.Grant) -> String? {
        guard grant != .clientCredentials else {
            if table.has("assertion_file") {
                refuse("assertion_file", "is for grant = \"jwt_bearer\" and grant = \"token_exchange\"")
            }
            return nil
        }
        guard let written = table.string("assertion_file") else {
            if !isWritten("assertion_file") {
                refuse("grant", "\"\(grant.rawValue)\" needs assertion_file with the token to exchange")
            }
            return nil
        }
        guard let path = expand("assertion_file", written) else { return nil }
        // The platform may create the file later. It is read at each use, so a missing file is no error here.
        if !AccountConfiguration.awaitsAssertion(at: path),
            case .failure(let failure) = AccountConfiguration.assertion(at: path, user: place.user)
        {
            refuse("assertion_file", failure.message)
        }
        return path
    }

    private mutating func readSubjectType(of grant: ServiceConfiguration.Grant) -> ExchangedTokenType {
        guard let written = table.string("subject_token_type") else { return .jwt }
        if grant != .tokenExchange {
            refuse("subject_token_type", "is for grant = \"token_exchange\"")
        } else if ExchangedTokenType(parsing: written) == nil {
            refuse(
                "subject_token_type",
                "must be one of \(ExchangedTokenType.words.joined(separator: ", ")), or a URI of the provider's own")
        }
        return ExchangedTokenType(parsing: written) ?? .jwt
    }

    private mutating func readAudience() -> String? {
        guard let audience = table.string("audience") else { return nil }
        if !AccountReader.isPrintable(audience) { refuse("audience", "must be printable ASCII") }
        return audience
    }

    /// RFC 8707 section 2: an absolute URI without a fragment.
    private mutating func readResource() -> String? {
        guard let resource = table.string("resource") else { return nil }
        let scheme = resource.prefix { $0 != ":" }
        if !AccountReader.isPrintable(resource) || resource.contains(" ") || resource.contains("#")
            || scheme.isEmpty || scheme.count == resource.count
        {
            refuse("resource", "must be an absolute URI without a fragment")
        }
        return resource
    }
}
