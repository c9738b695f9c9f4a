internal import OAuth
internal import RingbackBase

struct AccountReader {
    let table: SettingTable

    var isService: Bool { table.serviceKey != nil }

    /// Nil if the provider cannot be read.
    func read() -> AccountConfiguration? {
        if !table.name.isAccountName { table.refuse(nil, "an account's name \(AccountReader.nameRule)") }
        let provider = readProvider()
        let client = ClientReader(table: table).read(of: provider)
        let service = ServiceReader(table: table).read(of: client, at: provider)
        let redirect = readRedirect(of: provider)
        let trust = readTrust()
        let route = readRoute()
        // With OpenID Connect an ID token is requested.
        let scopes = readScopes(of: provider) ?? (isService || provider?.issuer == nil ? [] : ["openid"])
        let parameters = readParameters(of: provider)
        let warnings = table.integers("session_warnings")?.map(\.number).sorted(by: >)
        return provider.map { provider in
            AccountConfiguration(
                name: table.name, provider: provider, clientID: client.id, clientAuthentication: client.authentication,
                clientSecret: client.secret, clientKeyFile: client.keyFile, clientKeyCredential: client.keyCredential,
                clientKeyID: client.keyID, scopes: scopes, service: service, redirect: redirect,
                redirectURI: table.string("redirect_uri"), postLogoutRedirectURI: readPostLogoutRedirect(),
                responseMode: readResponseMode(redirect, of: provider),
                requiresIssuerInResponse: readIssuerInResponse(of: provider),
                pushedRequests: readPushedRequests(of: provider), dpop: readDPoP(of: provider),
                asksConsentForOfflineAccess: readOfflineConsent(of: provider), authorizationParameters: parameters,
                flowTimeout: .seconds(table.integer("flow_timeout") ?? AccountReader.usualFlowTimeout(of: provider)),
                refreshMargin: table.integer("refresh_margin"), sessionWarnings: warnings,
                callbackPeerUIDs: table.uids("callback_peer_uids"), trust: trust,
                certificateFile: trust.certificateAuthorities == nil ? nil : table.filePath("ca_file"), route: route,
                headers: readHeaders(), page: PageSettings(reading: table), consent: table.word("consent"),
                programs: readPrograms(), source: table.source,
                lines: Dictionary(table.members.map { ($0.key, $0.node.line) }, uniquingKeysWith: { first, _ in first })
            )
        }
    }

    static let nameRule = "begins with a-z or 0-9 and goes on with up to 63 of a-z, 0-9, '.', '_', '-'"

    private func readPrograms() -> [String] {
        (table.strings("programs") ?? []).compactMap { text, node in
            let isUnit =
                text.hasPrefix("unit:") && !text.contains("/")
                && (text.hasSuffix(".service") || text.hasSuffix(".scope"))
            guard isUnit || table.place.path(text) != nil else {
                table.refuse(
                    "programs", node,
                    "is the absolute path of an executable, or unit:NAME with a name that ends in .service or .scope")
                return nil
            }
            return isUnit ? text : table.place.path(text)
        }
    }

    /// In seconds. Supabase's own flows expire after five minutes.
    private static func usualFlowTimeout(of provider: AccountProvider) -> Int {
        if case .supabase = provider { 300 } else { 600 }
    }

    private func readScopes(of provider: AccountProvider?) -> [String]? {
        guard let scopes = table.strings("scopes") else { return nil }
        var seen: Set<String> = []
        let hasIDTokens = provider.map { $0.issuer != nil || $0.word == "supabase" || isService } ?? true
        for (scope, node) in scopes {
            if scope.isEmpty || !scope.utf8.allSatisfy(ScopeList.isCharacter) {
                table.refuse(
                    "scopes", node, "a scope is printable ASCII without spaces, quotes and backslashes; one string each"
                )
            } else if !seen.insert(scope).inserted {
                table.refuse("scopes", node, "the same scope is listed twice")
            } else if scope == "openid", !hasIDTokens {
                // Without issuer and keys the ID token cannot be validated, so every sign-in would fail.
                table.refuse(
                    "scopes", node,
                    "openid asks for an ID token, which is checked with the provider's issuer and keys: this provider "
                        + "has none; leave openid out, or name the provider by issuer alone")
            }
        }
        return scopes.map(\.text)
    }

    private func readParameters(of provider: AccountProvider?) -> [FormEncoding.Pair] {
        var parameters: [String: String] = [:]
        if case .preset(let preset) = provider {
            for (name, value) in preset.authorizationParameters { parameters[name] = value }
        }
        for member in table.table("authorization_params")?.members ?? [] {
            guard case .string(let value) = member.node.value else { continue }
            if AuthorizationRequest.reservedParameters.contains(member.key) {
                table.refuse("authorization_params", member.node, member.key, "is set by Ringback itself")
            } else if !SettingTable.isPrintable(member.key) || !SettingTable.isPrintable(value, mayBeEmpty: true) {
                table.refuse("authorization_params", member.node, member.key, "must be printable ASCII")
            }
            parameters[member.key] = value
        }
        return parameters.sorted { $0.key < $1.key }.map { FormEncoding.Pair($0.key, $0.value) }
    }
}
