internal import HTTPMessages
internal import OAuth
internal import SupabaseAuth

/// Two accounts of different issuers must not share a redirect URI. Attack (mix-up, RFC 9700 section 4.4): an
/// authorization response of one provider could be accepted for a flow of the other, whose token endpoint would then
/// receive the code. Only an `iss` in every authorization response (RFC 9207) prevents this, and then both accounts
/// must require it.
enum RedirectMixUpCheck {
    /// The errors, in the order of the accounts' names: one for each account that shares with an earlier one.
    static func mistakes(in accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        // Only accounts with the same place are compared: a configuration may have thousands of accounts with different
        // places.
        var earlier: [String: [AccountConfiguration]] = [:]
        var mistakes: [ConfigurationError] = []
        for account in accounts.values.sorted(by: { $0.name < $1.name }) where account.service == nil {
            let place = account.redirect.placeWithoutFreePort
            if let other = earlier[place]?.first(where: { isMixable($0, account) }) {
                mistakes.append(mistake(of: account, sharingWith: other))
            }
            earlier[place, default: []].append(account)
        }
        return mistakes
    }

    private static func isMixable(_ one: AccountConfiguration, _ other: AccountConfiguration) -> Bool {
        one.issuerIdentity != other.issuerIdentity && one.redirect.isSamePlace(as: other.redirect)
            && !(one.requiresIssuerInResponse && other.requiresIssuerInResponse)
    }

    private static func mistake(
        of account: AccountConfiguration, sharingWith other: AccountConfiguration
    ) -> ConfigurationError {
        account.mistake(
            at: "redirect_uri",
            "\(account.redirect.template) is also the redirect URI of accounts.\(other.name) "
                + "(\(other.place(of: "redirect_uri"))), which has another issuer: the response of one provider could "
                + "be taken for the other's. Give one of them a redirect_uri of its own. If both providers put iss "
                + "into their responses (RFC 9207), setting authorization_response_iss = true for both accounts is "
                + "enough")
    }
}

extension AccountConfiguration {
    /// Accounts with the same value belong to the same provider.
    fileprivate var issuerIdentity: String {
        switch provider {
        case .supabase(let project): return project.project.authURL
        case .oidc, .preset, .oauth2:
            if let issuer = provider.issuer { return issuer }
            return provider.endpoints.map { "\($0.authorizationEndpoint) \($0.tokenEndpoint)" } ?? provider.word
        }
    }

    /// The position of a key, or of the account if the key is not written.
    fileprivate func place(of key: String) -> String { "\(source.file):\(lines[key] ?? source.line)" }
}

extension RedirectTarget {
    /// Equal for all targets that ``isSamePlace(as:)`` could treat as the same place.
    fileprivate var placeWithoutFreePort: String {
        switch self {
        case .loopback(let host, _, let path): return "loopback \(host) \(RedirectTarget.requested(path))"
        case .customScheme(let uri), .https(let uri):
            guard let url = try? WebURL(parsing: uri) else { return uri }
            let path = RedirectTarget.requested(url.path)
            return "\(url.scheme) \(url.host ?? "") \(path.hasSuffix("/") ? String(path.dropLast()) : path)"
        }
    }

    /// True if a callback of one could be taken for a callback of the other. A free port may be any port.
    func isSamePlace(as other: RedirectTarget) -> Bool {
        switch (self, other) {
        case (.loopback(let host, let port, let path), .loopback(let otherHost, let otherPort, let otherPath)):
            return host == otherHost && RedirectTarget.requested(path) == RedirectTarget.requested(otherPath)
                && (port == nil || otherPort == nil || port == otherPort)
        case (.customScheme(let uri), .customScheme(let other)), (.https(let uri), .https(let other)):
            guard let one = try? WebURL(parsing: uri), let two = try? WebURL(parsing: other) else {
                return uri == other
            }
            return one.isPlace(of: two)
        default: return false
        }
    }

    /// The path that a browser requests: `/` for an empty one (RFC 9110 section 4.2.3).
    private static func requested(_ path: String) -> String { path.isEmpty ? "/" : path }
}
