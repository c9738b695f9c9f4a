public import HTTPMessages

/// Where the browser comes back to, with the flow's key. The server does not return a `state`, but it keeps
/// `redirect_to`: the path unchanged, the query re-encoded and sorted. The key identifies the flow of a callback. It is
/// not secret, because it is visible to the provider and in mails; PKCE proves that a code belongs to the flow.
public struct SupabaseRedirect: Sendable, Equatable {
    /// Where the key is.
    public enum KeyPlace: String, Sendable {
        /// In the last path segment: loopback addresses need no entry in the project's allow list, whatever their path.
        case path
        /// In the parameter ``SupabaseRedirect/keyName``.
        case query
        /// No key, for allow lists that contain the exact address.
        case none
    }

    /// The name of the parameter.
    public static let keyName = "flow"

    /// The value of `redirect_to`.
    public let url: String
    public let keyPlace: KeyPlace
    /// The address without the key.
    let base: WebURL
    /// The entry that the project's allow list needs for the address; nil if it needs none. The server accepts loopback
    /// addresses without an entry, but not the name localhost. It rejects other addresses silently: the browser then
    /// does not come back to the flow.
    public let allowListEntry: String?

    /// Creates the address for a flow. `base` has no key: `http://127.0.0.1:8400/callback/work` or
    /// `swisscoin://auth-callback`. `key` is base64url, because `.` and `/` are separators in the allow list's
    /// patterns. With `isKeyless` the address is sent unchanged; on loopback the key is always in the path. With
    /// `hasFreePort` the allow list entry covers all ports.
    ///
    /// Throws for `redirect_uri` if it is not a URL, has a fragment, or has a parameter that the server uses itself.
    public init(
        base text: String, key: String, isKeyless: Bool = false, hasFreePort: Bool = false
    ) throws(FieldError) {
        guard let base = try? WebURL(parsing: text), base.fragment == nil else {
            throw FieldError(field: "redirect_uri", reason: "not a URL, or one with a fragment")
        }
        let names = base.query.map { ((try? FormEncoding.parse($0)) ?? []).map(\.name) } ?? []
        if let name = names.first(where: SupabaseRedirect.reserved.contains) {
            throw FieldError(field: "redirect_uri", reason: "the parameter \(name) is reserved")
        }
        self.base = base
        let isWeb = base.scheme == "http" || base.scheme == "https"
        if isWeb, base.isLoopback {
            let split = SupabaseRedirect.splitQuery(text)
            keyPlace = .path
            url = (split.path.hasSuffix("/") ? split.path : split.path + "/") + key + split.query
            let place = hasFreePort ? "\(base.scheme)://localhost:*\(base.path)" : split.path
            allowListEntry = base.host == "localhost" ? SupabaseRedirect.anyPath(place) : nil
        } else if isKeyless {
            keyPlace = .none
            url = text
            allowListEntry = text
        } else {
            keyPlace = .query
            let separator = base.query.map { $0.isEmpty ? "" : "&" } ?? "?"
            url = text + separator + "\(SupabaseRedirect.keyName)=\(key)"
            allowListEntry = SupabaseRedirect.anyQuery(text)
        }
    }

    /// Parameters that the server adds to a redirect, or that could be confused with those.
    private static let reserved: Set<String> = [
        "code", "error", "error_code", "error_description", "message", "type", "sb", keyName, "access_token",
        "refresh_token", "provider_token", "provider_refresh_token", "token_type", "expires_in", "expires_at",
    ]

    private static func splitQuery(_ text: String) -> (path: String, query: String) {
        guard let mark = text.firstIndex(of: "?") else { return (text, "") }
        return (String(text[..<mark]), String(text[mark...]))
    }

    /// `**` also matches the separators `.` and `/`.
    private static func anyPath(_ path: String) -> String { path.hasSuffix("/") ? "\(path)**" : "\(path)/**" }

    /// `?` in a pattern also matches itself. `*` does not match the separators, which the query may contain.
    private static func anyQuery(_ text: String) -> String {
        let split = splitQuery(text)
        return split.path + (split.query.contains { $0 == "." || $0 == "/" } ? "?**" : "?*")
    }

    /// True if a callback is at this address. The query is ignored, because the server re-encodes it.
    public func isPlace(of callback: WebURL) -> Bool {
        guard let mine = try? WebURL(parsing: url) else { return false }
        return callback.isPlace(of: mine)
    }
}
