public import RingbackBase
internal import SupabaseAuth

struct OriginReader {
    let table: SettingTable

    private static let maxHeaders = 8
    private static let maxValues = 16
    private static let longestName = 256

    /// Nil without a URL.
    func read() -> OriginConfiguration? {
        let pattern = readPattern()
        let account = table.account
        let matchUsername = readName("match_username", isForBasic: false)
        let username = readName("username", isForBasic: true)
        let kind: TokenKind = table.word("kind") ?? .accessToken
        let (scopes, audience) = (table.scopes(), table.audience)
        let resource = table.text(
            "resource", "is an absolute URI without a fragment (RFC 8707)", where: TokenDownscoping.isResource)
        let headers = readHeaders()
        let allowed = readAllowed()
        if headers.contains(where: { $0.uses("username") }), !table.has("username") {
            table.refuse("header", "has {username}: set username too")
        }
        if kind == .idToken { table.refuseDownscoping(ofIDTokenBy: "kind", ["scope", "audience", "resource"]) }
        guard let pattern else { return nil }
        return OriginConfiguration(
            rule: OriginRule(pattern, username: matchUsername), account: account, kind: kind, scopes: scopes,
            audience: audience, resource: resource, username: username, headers: headers,
            allowed: allowed, source: table.source)
    }

    private func readPattern() -> OriginPattern? {
        guard let text = table.string("url") else {
            table.refuseMissing("url", "needs url: where the token may be sent")
            return nil
        }
        return table.reporting("url") { () throws(OriginPattern.Failure) in try OriginPattern(parsing: text) }
    }

    /// A user name. In Basic authentication it ends at the first colon (RFC 7617), so it must not contain one.
    private func readName(_ key: String, isForBasic: Bool) -> String? {
        guard let name = table.string(key) else { return nil }
        let isPlain = name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        if name.isEmpty || name.utf8.count > OriginReader.longestName || !isPlain {
            table.refuse(key, "is 1 to \(OriginReader.longestName) bytes without control characters")
        } else if isForBasic, name.contains(":") {
            table.refuse(key, "must not have a colon")
        }
        return name
    }

    private func readAllowed() -> ConnectionSettings {
        var allowed = ConnectionSettings()
        allowed.withoutScheme = table.boolean("without_scheme") ?? false
        allowed.skipsVerification = table.boolean("insecure_skip_tls_verify") ?? false
        allowed.authorities = readValues(
            "ca_sha256", "is the SHA-256 of the authority's PEM file in 64 hexadecimal digits",
            ConnectionSettings.digest)
        allowed.serverNames = readValues("tls_server_name", "is a host name", ConnectionSettings.serverName)
        allowed.proxies = readValues(
            "proxy_url", "is a URL such as http://proxy.example.org:3128", ConnectionSettings.proxy)
        return allowed
    }

    private func readValues(_ key: String, _ meaning: String, _ normalized: (String) -> String?) -> Set<String> {
        let texts = table.texts(key)
        if texts.count > OriginReader.maxValues {
            table.refuse(key, "may have \(OriginReader.maxValues) values at most")
        }
        var values: Set<String> = []
        for (text, element) in texts {
            if let value = normalized(text) { values.insert(value) } else { table.refuse(key, element, meaning) }
        }
        return values
    }

    private func readHeaders() -> [OriginHeader] {
        guard table.has("header") else { return [.usual] }
        let texts = table.texts("header")
        let headers = texts.compactMap { text, element in
            table.reporting("header", at: element) { () throws(OriginHeader.Failure) in
                try OriginHeader(parsing: text)
            }
        }
        let names = Set(headers.map { $0.name.lowercased() })
        if texts.count > OriginReader.maxHeaders {
            table.refuse("header", "may have \(OriginReader.maxHeaders) fields at most")
        } else if names.count < headers.count {
            table.refuse("header", "has the same field twice")
        } else if headers.count == texts.count, !headers.contains(where: { $0.uses("token") }) {
            table.refuse("header", "no field has {token}")
        }
        return headers
    }
}

extension OriginPattern.Failure: SettingFailure {
    var message: String {
        switch self {
        case .notAURL: "must be a URL such as https://git.example.org/*"
        case .noHost: "needs a host, as in https://git.example.org/*"
        case .plainText: "must be encrypted, such as https: a protocol in plain text is allowed to this machine only"
        case .wildcard: "may have one *, as its last segment: https://git.example.org/team/*"
        case .notAnOrigin: "must not have a user name, a query or a fragment"
        case .ambiguousPath:
            "has a path that servers read in different ways: no dot segments, no empty ones, and none of %2F, %5C, %25"
        }
    }
}

extension OriginHeader.Failure: SettingFailure {
    var message: String {
        switch self {
        case .notAField: "must be NAME: VALUE on one line, in printable ASCII"
        case .reserved: "this field belongs to the connection; a tool sets it itself"
        case .unknownPlaceholder: "only the placeholders {token}, {username} and {api_key} are allowed"
        }
    }
}

/// `[[origin]]`: which account's token a tool gets for the servers below a URL.
public struct OriginConfiguration: Sendable, Equatable {
    /// What a lookup is compared with: the URL, and the user name that the tool must ask for.
    public let rule: OriginRule
    public let account: String
    public let kind: TokenKind
    /// The scopes of a downscoped token; nil for the session's own.
    public let scopes: [String]?
    public let audience: String?
    public let resource: String?
    /// The user name for tools that need one; nil for the one in the tool's request.
    public let username: String?
    /// The header fields in which tools send the token. Never empty.
    public let headers: [OriginHeader]
    /// The tools' connections that are allowed beside the usual one.
    public let allowed: ConnectionSettings
    public let source: ConfigurationSource

    /// The maximum number of tables in all configuration files together.
    static let most = 256
}

extension OriginConfiguration {
    /// The errors that can be found only after all files were read.
    static func mistakes(
        in origins: [OriginConfiguration], accounts: [String: AccountConfiguration]
    ) -> [ConfigurationError] {
        var errors = origins.flatMap { $0.mistakes(knowing: accounts) }
        var seen: [OriginRule: OriginConfiguration] = [:]
        for origin in origins {
            guard let former = seen.updateValue(origin, forKey: origin.rule) else { continue }
            let user = origin.rule.username == nil ? "" : " and the same match_username"
            errors.append(
                origin.source.mistake(
                    "origin",
                    "has the same url\(user) as the table in line \(former.source.line) of \(former.source.file): a "
                        + "lookup would match both"))
        }
        if origins.count > most, let origin = origins.last {
            errors.append(origin.source.mistake("origin", "there are more than \(most) of them"))
        }
        return errors
    }

    private func mistakes(knowing accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        guard let account = accounts[account] else {
            return [source.noAccount(account, at: "origin", among: accounts.keys)]
        }
        guard headers.contains(where: { $0.uses("api_key") }) else { return [] }
        if case .supabase(let supabase) = account.provider, supabase.project.apiKey != nil { return [] }
        return [
            source.mistake(
                "origin",
                "header has {api_key}, and \(account.name) is no account of a Supabase project with an api_key")
        ]
    }

    var json: JSONObject {
        func list(_ values: Set<String>) -> [String]? { values.isEmpty ? nil : values.sorted() }
        return [
            "url": rule.pattern.text, "account": account, "match_username": rule.username,
            "scope": scopes?.joined(separator: " "), "audience": audience, "resource": resource, "kind": kind.rawValue,
            "username": username, "headers": headers.map(\.text), "without_scheme": allowed.withoutScheme ? true : nil,
            "ca_sha256": list(allowed.authorities), "tls_server_name": list(allowed.serverNames),
            "proxy_url": list(allowed.proxies), "insecure_skip_tls_verify": allowed.skipsVerification ? true : nil,
            "source": source.json,
        ]
    }
}
