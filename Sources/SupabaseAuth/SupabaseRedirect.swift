public import HTTPMessages

/// Where a sign-in comes back to, with the flow's key in it. The server gives no `state` back, but keeps what stands in
/// `redirect_to`: its path as it is, its query re-encoded and sorted. The key says which flow a callback is for and is
/// seen by the provider and in mails: no secret, PKCE is the proof.
public struct SupabaseRedirect: Sendable, Equatable {
    /// Where the key is.
    public enum KeyPlace: String, Sendable {
        /// The last path segment: loopback addresses need no entry in the project's allow list, whatever their path.
        case path
        /// The parameter ``SupabaseRedirect/keyName``.
        case query
        /// Nowhere: for allow lists with the exact address.
        case none
    }

    /// The name of the parameter with the key.
    public static let keyName = "flow"

    /// What is sent as `redirect_to`.
    public let url: String
    public let keyPlace: KeyPlace
    /// The address without its key.
    let base: WebURL
    /// What the project's allow list must have so that the address is accepted; nil where it needs no entry: the server
    /// takes a loopback address, but not the name localhost. It refuses in silence: the flow then never comes back.
    public let allowListEntry: String?

    /// An address for a flow. `base` is without the key: `http://127.0.0.1:8400/callback/work` or
    /// `swisscoin://auth-callback`; `key` is of base64url, since `.` and `/` separate in the server's patterns. Where
    /// `isKeyless`, the address is sent unchanged; on loopback the key is always in the path. With `hasFreePort` the port
    /// is one of many, and the entry has them all.
    ///
    /// Throws for `redirect_uri`: not a URL, or with a fragment, or with a parameter that the server uses itself.
    public init(
        base text: String, key: String, isKeyless: Bool = false, hasFreePort: Bool = false
    ) throws(FieldError) {
        guard let base = try? WebURL(parsing: text), base.fragment == nil else {
            throw FieldError(field: "redirect_uri", reason: "not a URL, or one with a fragment")
        }
        let names = base.query.map { ((try? FormEncoding.parse($0)) ?? []).map(\.name) } ?? []
        if let name = names.first(where: SupabaseRedirect.reserved.contains) {
            throw FieldError(field: "redirect_uri", reason: "the parameter \(name) is the server's or ours")
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

    /// Names that the server writes into a redirect, or that would be taken for its words.
    private static let reserved: Set<String> = [
        "code", "error", "error_code", "error_description", "message", "type", "sb", keyName, "access_token",
        "refresh_token", "provider_token", "provider_refresh_token", "token_type", "expires_in", "expires_at",
    ]

    private static func splitQuery(_ text: String) -> (path: String, query: String) {
        guard let mark = text.firstIndex(of: "?") else { return (text, "") }
        return (String(text[..<mark]), String(text[mark...]))
    }

    /// `**` crosses the separators `.` and `/`.
    private static func anyPath(_ path: String) -> String { path.hasSuffix("/") ? "\(path)**" : "\(path)/**" }

    /// `?` matches itself among others; `*` stops at the separators, which a query of the person's may contain.
    private static func anyQuery(_ text: String) -> String {
        let split = splitQuery(text)
        return split.path + (split.query.contains { $0 == "." || $0 == "/" } ? "?**" : "?*")
    }

    /// True if a callback is at this address: everything up to its query, which the server re-encodes.
    public func isPlace(of callback: WebURL) -> Bool {
        guard let mine = try? WebURL(parsing: url) else { return false }
        return callback.isPlace(of: mine)
    }
}
