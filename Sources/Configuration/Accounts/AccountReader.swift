internal import HTTPMessages
internal import OAuth

/// Reads one `[accounts.NAME]`. It continues after an error to report all of them. The result is nil if there was an
/// error.
struct AccountReader {
    let name: String
    let node: TOMLDocument.Node
    let table: TOMLTableReader
    /// The table including rejected members.
    private let unchecked: TOMLTableReader
    let place: ConfigurationPlace
    /// True if only the file's owner can read it.
    let isPrivateFile: Bool
    /// Collects the errors.
    var check: KeyCheck

    init(
        name: String, node: TOMLDocument.Node, unchecked: TOMLTableReader, place: ConfigurationPlace,
        isPrivateFile: Bool,
        check: KeyCheck
    ) {
        self.name = name
        self.node = node
        if case .table(let members) = node.value { table = TOMLTableReader(members) } else { table = .init([]) }
        self.unchecked = unchecked
        self.place = place
        self.isPrivateFile = isPrivateFile
        self.check = check
    }

    mutating func read() -> AccountConfiguration? {
        let before = check.errors.count
        if !AccountReader.isName(name) {
            refuse(nil, "an account's name begins with a-z or 0-9 and goes on with up to 63 of a-z, 0-9, '.', '_', '-'")
        }
        let provider = readProvider()
        let client = readClient(of: provider)
        let service = readService(of: client, at: provider)
        let redirect = readRedirect(of: provider)
        let trust = readTrust()
        let route = readRoute()
        let scopes = readScopes(of: provider) ?? (isService ? [] : AccountReader.usualScopes(of: provider))
        let parameters = readParameters(of: provider)
        let warnings = table.integers("session_warnings")?.map(\.number).sorted(by: >)
        let account = provider.map { provider in
            AccountConfiguration(
                name: name, provider: provider, clientID: client.id, clientAuthentication: client.authentication,
                clientSecret: client.secret, clientKeyFile: client.keyFile,
                clientKeyCredential: client.keyCredential, clientKeyID: client.keyID, scopes: scopes, service: service,
                redirect: redirect,
                redirectURI: table.string("redirect_uri"), postLogoutRedirectURI: readPostLogoutRedirect(),
                responseMode: readResponseMode(redirect, of: provider),
                requiresIssuerInResponse: readIssuerInResponse(of: provider),
                pushedRequests: readPushedRequests(of: provider),
                asksConsentForOfflineAccess: readOfflineConsent(of: provider),
                authorizationParameters: parameters,
                flowTimeout: table.integer("flow_timeout") ?? AccountReader.usualFlowTimeout(of: provider),
                refreshMargin: table.integer("refresh_margin"), sessionWarnings: warnings,
                callbackPeerUIDs: readPeers(), trust: trust, route: route,
                headers: readHeaders(),
                policy: table.string("policy").flatMap(AccountPolicy.init) ?? .sameUID,
                source: ConfigurationSource(file: check.file, line: node.line),
                lines: Dictionary(table.members.map { ($0.key, $0.node.line) }, uniquingKeysWith: { first, _ in first })
            )
        }
        return check.errors.count == before ? account : nil
    }

    /// True if the key is written, even with an error. Then it must not be reported as missing.
    func isWritten(_ key: String, in inner: String? = nil) -> Bool {
        let table = inner.map { unchecked.table($0) } ?? unchecked
        return table?.has(key) == true || check.meant.contains(["accounts", name] + (inner.map { [$0] } ?? []) + [key])
    }

    /// Reports an error at a key of the account, or at the account itself.
    mutating func refuse(_ key: String?, _ message: String) {
        let path = ["accounts", name] + (key.map { [$0] } ?? [])
        check.refuse(key.flatMap { table.node($0) } ?? node, path, message)
    }

    /// Reports an error at an element of a key's array.
    mutating func refuse(_ key: String, _ element: TOMLDocument.Node, _ message: String) {
        check.refuse(element, ["accounts", name, key], message)
    }

    /// Reports an error at a name in a key's table.
    mutating func refuse(_ key: String, _ value: TOMLDocument.Node, _ inside: String, _ message: String) {
        check.refuse(value, ["accounts", name, key, inside], message)
    }

    static func isName(_ name: String) -> Bool {
        let letters = name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A: true
            default: "._-".utf8.contains(byte)
            }
        }
        return letters && (1...64).contains(name.utf8.count) && !"._-".contains(name.first ?? ".")
    }

    /// The default timeout. Supabase's own flows expire after five minutes.
    private static func usualFlowTimeout(of provider: AccountProvider) -> Int {
        if case .supabase = provider { 300 } else { 600 }
    }

    /// The default scopes. With OpenID Connect an ID token is requested.
    private static func usualScopes(of provider: AccountProvider?) -> [String] {
        provider?.issuer == nil ? [] : ["openid"]
    }

    private mutating func readScopes(of provider: AccountProvider?) -> [String]? {
        guard let scopes = table.strings("scopes") else { return nil }
        var seen: Set<String> = []
        let hasIDTokens = provider.map { $0.issuer != nil || $0.word == "supabase" || isService } ?? true
        for (scope, node) in scopes {
            if scope.isEmpty || !scope.utf8.allSatisfy(AccountReader.isScopeByte) {
                refuse(
                    "scopes", node, "a scope is printable ASCII without spaces, quotes and backslashes; one string each"
                )
            } else if !seen.insert(scope).inserted {
                refuse("scopes", node, "the same scope is listed twice")
            } else if scope == "openid", !hasIDTokens {
                // Without issuer and keys the ID token cannot be checked, and every sign-in would fail.
                refuse(
                    "scopes", node,
                    "openid asks for an ID token, which is checked with the provider's issuer and keys: this provider "
                        + "has none; leave openid out, or name the provider by issuer alone")
            }
        }
        return scopes.map(\.text)
    }

    /// True for a character of a scope (RFC 6749 section 3.3).
    static func isScopeByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private mutating func readParameters(of provider: AccountProvider?) -> [FormEncoding.Pair] {
        var parameters: [String: String] = [:]
        if case .preset(let preset) = provider {
            for (name, value) in preset.authorizationParameters { parameters[name] = value }
        }
        for member in table.table("authorization_params")?.members ?? [] {
            guard case .string(let value) = member.node.value else { continue }
            if AuthorizationRequest.reservedParameters.contains(member.key) {
                refuse("authorization_params", member.node, member.key, "is set by Ringback itself")
            } else if !AccountReader.isPrintable(member.key) || !AccountReader.isPrintable(value, mayBeEmpty: true) {
                refuse("authorization_params", member.node, member.key, "must be printable ASCII")
            }
            parameters[member.key] = value
        }
        return parameters.sorted { $0.key < $1.key }.map { FormEncoding.Pair($0.key, $0.value) }
    }

    private mutating func readPeers() -> [UInt32] {
        let peers = table.integers("callback_peer_uids") ?? []
        for (number, node) in peers where number == 65_534 {
            refuse("callback_peer_uids", node, "65534 is the uid of all users that this system does not know")
        }
        return peers.compactMap { UInt32(exactly: $0.number) }
    }

    /// True for printable ASCII including spaces.
    static func isPrintable(_ text: String, mayBeEmpty: Bool = false) -> Bool {
        (mayBeEmpty || !text.isEmpty) && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }
}
