internal import HTTPMessages
internal import OAuth
internal import SupabaseAuth

/// Two accounts of different issuers must not share a redirect URI. Attack (mix-up, RFC 9700 section 4.4): an
/// authorization response of one provider could be accepted for a flow of the other, whose token endpoint would then
/// receive the code. The only other protection is an `iss` in every authorization response (RFC 9207), which both
/// accounts must then require.
enum RedirectMixUpCheck {
    /// The errors, in the order of the accounts' names: one for each account that shares a redirect URI with an earlier
    /// one.
    static func mistakes(in accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        var earlier: [String: Sharers] = [:]
        var mistakes: [ConfigurationError] = []
        for account in accounts.values.sorted(by: { $0.name < $1.name }) where account.service == nil {
            let place = account.redirect.place
            if let other = earlier[place.text]?.mixable(with: account, at: place.port) {
                mistakes.append(mistake(of: account, sharingWith: other))
            }
            earlier[place.text, default: Sharers()].add(account, at: place.port)
        }
        return mistakes
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
        // The issuer is found only at the sign-in, so each MCP account counts as a provider of its own.
        case .mcp(let mcp): return "mcp \(name) \(mcp.server.resource)"
        case .oidc, .preset, .oauth2:
            if let issuer = provider.issuer { return issuer }
            return provider.endpoints.map { "\($0.authorizationEndpoint) \($0.tokenEndpoint)" } ?? provider.word
        }
    }

    /// The position of a key, or of the account if the key is not written.
    fileprivate func place(of key: String) -> String { "\(source.file):\(lines[key] ?? source.line)" }
}

/// The accounts whose redirect URIs are equal apart from the port. There may be thousands of them, so at most two
/// accounts of each kind are kept.
private struct Sharers {
    /// Accounts for which the check has the same result, apart from their issuers.
    private struct Kind: Hashable {
        let ports: Ports
        let requiresIssuer: Bool
    }

    private enum Ports: Hashable {
        case fixed(Int), free, all
    }

    /// For each kind the first account, and the first account with another issuer than that one.
    private var accounts: [Kind: [AccountConfiguration]] = [:]

    /// - Parameter port: nil for a free port, which can be any port.
    mutating func add(_ account: AccountConfiguration, at port: Int?) {
        for ports in [port.map(Ports.fixed) ?? .free, .all] {
            let kind = Kind(ports: ports, requiresIssuer: account.requiresIssuerInResponse)
            let known = accounts[kind, default: []]
            guard known.count < 2, known.first?.issuerIdentity != account.issuerIdentity else { continue }
            accounts[kind] = known + [account]
        }
    }

    /// The first account, by name, that has another issuer and for whose flow a response to this account's flow could
    /// be accepted.
    func mixable(with account: AccountConfiguration, at port: Int?) -> AccountConfiguration? {
        // If both accounts require the issuer in the response, a response for one is never accepted for the other.
        let rules = account.requiresIssuerInResponse ? [false] : [false, true]
        let others = (port.map { [Ports.fixed($0), .free] } ?? [.all]).flatMap { ports in
            rules.flatMap { accounts[Kind(ports: ports, requiresIssuer: $0)] ?? [] }
        }
        return others.filter { $0.issuerIdentity != account.issuerIdentity }.min { $0.name < $1.name }
    }
}

extension RedirectTarget {
    /// Two targets are the same place if their texts and ports are equal; a free port (nil) equals every port. A
    /// callback for one could then be accepted for the other: see ``WebURL/isPlace(of:)``.
    fileprivate var place: (text: String, port: Int?) {
        switch self {
        case .loopback(let host, let port, let path): return ("loopback \(host) \(path.isEmpty ? "/" : path)", port)
        case .customScheme(let uri), .https(let uri):
            guard let url = try? WebURL(parsing: uri) else { return (uri, nil) }
            let isWeb = url.scheme == "http" || url.scheme == "https"
            let path = isWeb && url.path.isEmpty ? "/" : url.path
            let place = "\(url.scheme) \(url.host ?? "") \(url.port.map(String.init) ?? "")"
            return ("\(place) \(!isWeb && path.hasSuffix("/") ? String(path.dropLast()) : path)", nil)
        }
    }
}
