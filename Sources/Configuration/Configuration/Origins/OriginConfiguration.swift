public import HTTPMessages
internal import StrictJSON
internal import SupabaseAuth

/// `[[origin]]`: which account's token a tool gets for the servers below a URL.
public struct OriginConfiguration: Sendable, Equatable {
    /// Which of a session's tokens is given.
    public enum Kind: String, Sendable, CaseIterable {
        case accessToken = "access_token"
        case idToken = "id_token"
    }

    /// What a lookup is compared with: the URL, and the user name that the tool must ask for.
    public let rule: OriginRule
    /// The account's name.
    public let account: String
    public let kind: Kind
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
    /// Reports the errors that can be found only after all files were read: accounts that are not configured, and
    /// tables that match the same lookups.
    static func mistakes(
        in origins: [OriginConfiguration], accounts: [String: AccountConfiguration]
    ) -> [ConfigurationError] {
        var errors = origins.flatMap { $0.mistakes(knowing: accounts) }
        var seen: [OriginRule: OriginConfiguration] = [:]
        for origin in origins {
            guard let former = seen.updateValue(origin, forKey: origin.rule) else { continue }
            let user = origin.rule.username == nil ? "" : " and the same match_username"
            errors.append(
                origin.mistake(
                    "has the same url\(user) as the table in line \(former.source.line) of \(former.source.file): a "
                        + "lookup would match both"))
        }
        if origins.count > most, let origin = origins.last {
            errors.append(origin.mistake("there are more than \(most) of them"))
        }
        return errors
    }

    private func mistakes(knowing accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        guard let account = accounts[account] else {
            let nearest = NearestWord.find(for: account, among: accounts.keys).map { "; did you mean \($0)?" } ?? ""
            return [mistake("it names an account that does not exist\(nearest)")]
        }
        guard headers.contains(where: { $0.uses("api_key") }) else { return [] }
        if case .supabase(let supabase) = account.provider, supabase.project.apiKey != nil { return [] }
        return [
            mistake("header has {api_key}, and \(account.name) is no account of a Supabase project with an api_key")
        ]
    }

    private func mistake(_ message: String) -> ConfigurationError {
        ConfigurationError(file: source.file, line: source.line, key: "origin", message: message)
    }

    /// The members of the report's JSON.
    var json: JSON {
        var object = JSONObject([
            .init("url", .string(rule.pattern.text)), .init("account", .string(account)),
        ])
        object["match_username"] = rule.username.map { .string($0) }
        object["scope"] = scopes.map { .string($0.joined(separator: " ")) }
        object["audience"] = audience.map { .string($0) }
        object["resource"] = resource.map { .string($0) }
        object["kind"] = .string(kind.rawValue)
        object["username"] = username.map { .string($0) }
        object["headers"] = .array(headers.map { .string($0.text) })
        if allowed.withoutScheme { object["without_scheme"] = true }
        for (key, values) in [
            ("ca_sha256", allowed.authorities), ("tls_server_name", allowed.serverNames),
            ("proxy_url", allowed.proxies),
        ] where !values.isEmpty { object[key] = .array(values.sorted().map { .string($0) }) }
        if allowed.skipsVerification { object["insecure_skip_tls_verify"] = true }
        object["source"] = source.json
        return .object(object)
    }
}
