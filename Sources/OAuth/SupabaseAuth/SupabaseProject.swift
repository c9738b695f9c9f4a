internal import HTTPMessages
public import Secrets
internal import StrictJSON

/// A Supabase project and the requests to its Auth server, one method for each request.
///
/// Every request has the project's key as `apikey` and the version of the error format; some have a user's access
/// token. Cookies and a `Referer` are never sent; the server would use the `Referer` as a redirect URL. The project's
/// key is never sent as a bearer token, because keys of the new form are not tokens.
public struct SupabaseProject: Sendable, Equatable {
    /// Why a project cannot be used.
    public enum Failure: Error, Sendable, Equatable {
        /// Not https (or http on loopback), or with a query, a fragment or user information.
        case invalidURL
        /// Not printable ASCII, or empty.
        case invalidKey
        /// A key that bypasses row-level security. It must not be used in programs of users.
        case privilegedKey

        /// A sentence about the configuration.
        public var explanation: String {
            switch self {
            case .invalidURL:
                "The project's url must be https, or http on a loopback address, without query and fragment."
            case .invalidKey: "The project's api_key is not a key: printable characters without spaces."
            case .privilegedKey:
                "The project's api_key is a secret or service-role key, which bypasses row-level security. "
                    + "Use the publishable (anon) key."
            }
        }
    }

    /// Where the project's servers are, relative to its URL.
    public enum Layout: Sendable, Equatable {
        /// Behind Supabase's gateway: the Auth server is at `/auth/v1`, the tables are at `/rest/v1`.
        case gateway
        /// The URL is that of an Auth server without tables.
        case bare
    }

    /// The Auth server's URL without a trailing slash: `https://ref.supabase.co/auth/v1`.
    public let authURL: String
    /// The URL of the project's tables and functions without a trailing slash; nil for a bare Auth server.
    public let restURL: String?
    /// The required `iss` of the project's tokens, if they have one: ``authURL`` unless it is configured.
    public let issuer: String
    /// The project's publishable key; nil for a bare Auth server.
    public let apiKey: Secret?

    /// The version of the error format (`{"code": "…", "message": "…"}`).
    static let apiVersion = "2024-01-01"
    /// The maximum size of a response in bytes. A TOTP enrolment contains a picture of about 320 kB.
    static let maxResponse = 1 << 20

    /// Reads a project's URL. Throws ``Failure``.
    ///
    /// Behind a gateway it is the project's URL (`https://ref.supabase.co`, `http://127.0.0.1:54321`, also with a
    /// path); a URL that ends in `/auth/v1` is accepted as the Auth server's. For a bare server it is used unchanged.
    /// `issuer` is for projects whose tokens name an issuer other than the URL, for example a custom domain.
    public init(
        parsing url: String, apiKey: Secret?, layout: Layout = .gateway, issuer: String? = nil
    ) throws(Failure) {
        guard let parsed = try? WebURL(parsing: url), parsed.isSecure, parsed.query == nil, parsed.fragment == nil
        else {
            throw .invalidURL
        }
        if let apiKey { try SupabaseProject.check(apiKey) }
        let path = SupabaseProject.withoutEnd("/", of: parsed.path)
        switch layout {
        case .bare:
            authURL = parsed.origin + path
            restURL = nil
        case .gateway:
            let root = parsed.origin + SupabaseProject.withoutEnd("/auth/v1", of: path)
            authURL = root + "/auth/v1"
            restURL = root + "/rest/v1"
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

extension SupabaseProject {
    /// A request to the Auth server. The query is strictly encoded, because the server reads `+` as a space.
    func request(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONObject? = nil,
        bearer: Secret? = nil
    ) -> HTTPRequest {
        request(method, at: authURL + path, query: query, body: body, bearer: bearer)
    }

    /// A request to one of the project's servers.
    func request(
        _ method: String, at url: String, query: [(String, String)], body: JSONObject?, bearer: Secret?
    ) -> HTTPRequest {
        var fields = HTTPFields([("Accept", "application/json")])
        if let apiKey { fields.append("apikey", apiKey.revealed()) }
        fields.append("X-Supabase-Api-Version", SupabaseProject.apiVersion)
        if body != nil { fields.append("Content-Type", "application/json") }
        return HTTPRequest(
            method: method, url: query.isEmpty ? url : "\(url)?\(FormEncoding.encode(query))", fields: fields,
            authorization: bearer.map { Secret(bytes: Array("Bearer ".utf8) + $0.revealedBytes()) },
            body: body.map { Secret(bytes: JSON.object($0).serialized()) },
            limits: HTTPLimits(maxBody: SupabaseProject.maxResponse)
        )
    }
}
