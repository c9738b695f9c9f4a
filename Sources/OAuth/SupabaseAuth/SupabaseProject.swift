public import RingbackBase

/// A Supabase project, to which each ``SupabaseRequest`` can be sent. Cookies and a `Referer` are never sent; the
/// server would use the `Referer` as a redirect URL. The project's key is never sent as a bearer token: keys of the new
/// form are no tokens.
public struct SupabaseProject: Sendable, Equatable {
    /// Why a project cannot be used.
    public enum Failure: Error, Sendable, Equatable {
        /// Not https (or http on loopback), or with a query, a fragment or user information.
        case invalidURL
        /// Not printable ASCII, or empty.
        case invalidKey
        /// It bypasses row-level security, so it must not be used in programs of users.
        case privilegedKey
    }

    /// Where the project's servers are, relative to its URL.
    public enum Layout: Sendable, Equatable {
        /// Behind Supabase's gateway: the Auth server is at `/auth/v1`, the tables are at `/rest/v1`, the Edge Functions
        /// at `/functions/v1`.
        case gateway
        /// The URL is that of an Auth server without tables and functions.
        case bare
    }

    /// The Auth server's URL without a trailing slash: `https://ref.supabase.co/auth/v1`.
    public let authURL: String
    /// The URL below which the tables and functions are, without a trailing slash; nil for a bare Auth server.
    public let gatewayURL: String?
    /// The required `iss` of the project's tokens, if they have one: ``authURL`` unless it is configured.
    public let issuer: String
    /// The project's publishable key; nil for a bare Auth server.
    public let apiKey: Secret?
    /// Of the error format (`{"code": "…", "message": "…"}`).
    static let apiVersion = "2024-01-01"
    /// In bytes. A TOTP enrolment contains a picture of about 320 kB.
    static let maxResponse = 1 << 20

    /// Behind a gateway `url` is the project's (`https://ref.supabase.co`, `http://127.0.0.1:54321`, also with a path);
    /// one that ends in `/auth/v1` is accepted as the Auth server's. For a bare server it is used unchanged. `issuer`
    /// is for projects whose tokens name another one, for example a custom domain. Throws ``Failure``.
    public init(
        parsing url: String, apiKey: Secret?, layout: Layout = .gateway, issuer: String? = nil
    ) throws(Failure) {
        guard let parsed = try? WebURL(parsing: url), parsed.isSecure, parsed.query == nil, parsed.fragment == nil
        else { throw .invalidURL }
        if let apiKey { try SupabaseProject.check(apiKey) }
        let path = SupabaseProject.withoutEnd("/", of: parsed.path)
        switch layout {
        case .bare:
            authURL = parsed.origin + path
            gatewayURL = nil
        case .gateway:
            let root = parsed.origin + SupabaseProject.withoutEnd("/auth/v1", of: path)
            authURL = root + "/auth/v1"
            gatewayURL = root
        }
        self.issuer = issuer ?? authURL
        self.apiKey = apiKey
    }

    private static func withoutEnd(_ end: String, of path: String) -> String {
        var path = path
        while path.hasSuffix(end) { path.removeLast(end.count) }
        return path
    }

    private static func check(_ key: Secret) throws(Failure) {
        guard PlainText.isToken(key.revealed()) else { throw .invalidKey }
        guard !key.revealed().hasPrefix("sb_secret_") else { throw .privilegedKey }
        // Keys of the old form are JWTs that contain their role.
        if let payload = CompactToken(key)?.payload, payload["role"] == "service_role" { throw .privilegedKey }
    }
}

/// A request to a project, and by its type how the response is read.
public struct SupabaseRequest<Response: SupabaseResponse>: Sendable {
    let method: String
    /// Relative to the URL of the Auth server or of the gateway.
    let path: String
    let query: [(String, String)]
    let body: JSONObject?
    /// For a response that may contain the only valid refresh token.
    let keepsPartialBody: Bool
    /// Nil for the Auth server. For tables and functions, the field that is wrong if the project has none.
    let gatewayField: String?

    init(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONObject? = nil,
        keepsPartialBody: Bool = false, gatewayFor gatewayField: String? = nil
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.body = body
        self.keepsPartialBody = keepsPartialBody
        self.gatewayField = gatewayField
    }

    /// Where the server reads it, except for a single sign-on.
    static func query(redirectTo: String?) -> [(String, String)] { redirectTo.map { [("redirect_to", $0)] } ?? [] }
}

/// What is read of a project's response.
public protocol SupabaseResponse: Sendable {
    init(reading response: HTTPResponse) throws(SupabaseError)
}

extension SupabaseProject {
    /// `bearer` is a user's access token. Throws for a table or function of a bare Auth server.
    public func http<Response>(
        _ request: SupabaseRequest<Response>, bearer: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var root = authURL
        if let field = request.gatewayField {
            guard let gatewayURL else {
                throw FieldError(field: field, reason: "a bare Auth server has no tables and functions")
            }
            root = gatewayURL
        }
        var fields = HTTPFields([("Accept", "application/json")])
        if let apiKey { fields.append("apikey", apiKey.revealed()) }
        fields.append("X-Supabase-Api-Version", SupabaseProject.apiVersion)
        if request.body != nil { fields.append("Content-Type", "application/json") }
        // Strictly encoded, because the server reads `+` as a space.
        let query = request.query.isEmpty ? "" : "?\(FormEncoding.encode(request.query))"
        var http = HTTPRequest(
            method: request.method, url: root + request.path + query, fields: fields,
            authorization: bearer.map(Secret.bearer),
            body: request.body.map { Secret(bytes: JSON.object($0).serialized()) },
            limits: HTTPLimits(maxBody: SupabaseProject.maxResponse))
        http.keepsPartialBody = request.keepsPartialBody
        return http
    }
}

/// Where the browser comes back to, with the flow's key. The server does not return a `state`, but it keeps
/// `redirect_to`: the path unchanged, the query re-encoded and sorted. The key is not secret, because it is visible to
/// the provider and in mails; PKCE proves that a code belongs to the flow.
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

    public static let keyName = "flow"
    /// The value of `redirect_to`.
    public let url: String
    public let keyPlace: KeyPlace
    /// The address without the key.
    let base: WebURL
    /// What the project's allow list needs; nil for loopback, which the server accepts, but not by the name localhost.
    /// It rejects other addresses silently: the browser then does not come back to the flow.
    public let allowListEntry: String?

    /// `base` has no key: `http://127.0.0.1:8400/callback/work` or `swisscoin://auth-callback`. `key` is base64url,
    /// because `.` and `/` are separators in the allow list's patterns. With `isKeyless` the address is sent unchanged,
    /// except on loopback. With `hasFreePort` the allow list entry covers all ports. Throws for `redirect_uri` if it is
    /// not a URL, has a fragment, or has a parameter that the server uses itself.
    public init(base text: String, key: String, isKeyless: Bool = false, hasFreePort: Bool = false) throws(FieldError) {
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

    /// `?` also matches itself. `*` does not match the separators, which the query may contain.
    private static func anyQuery(_ text: String) -> String {
        let split = splitQuery(text)
        return split.path + (split.query.contains { $0 == "." || $0 == "/" } ? "?**" : "?*")
    }

    /// The query is ignored, because the server re-encodes it.
    public func isPlace(of callback: WebURL) -> Bool {
        guard let mine = try? WebURL(parsing: url) else { return false }
        return callback.isPlace(of: mine)
    }
}
