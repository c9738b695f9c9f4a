internal import HTTPMessages
public import Secrets
internal import StrictJSON

/// A Supabase project as its Auth server is asked: requests built as values, one method per request of its protocol.
///
/// What is sent to it: the project's key as `apikey`, the date of the error shapes that are read, and a user's access
/// token where the server wants one. Never a `Referer` (the server takes it for a redirect URL), never a cookie, and
/// the project's key never as a bearer: keys of the new form are not tokens.
public struct SupabaseProject: Sendable, Equatable {
    /// Why a project cannot be asked.
    public enum Failure: Error, Sendable, Equatable {
        /// Not https (or http on loopback), or with a query, a fragment or user information.
        case invalidURL
        /// Not printable ASCII, or empty.
        case invalidKey
        /// A key that passes over row-level security: it belongs on servers, not with a person's programs.
        case privilegedKey

        /// One sentence for the configuration.
        public var explanation: String {
            switch self {
            case .invalidURL:
                "The project's url must be https, or http on a loopback address, without query and fragment."
            case .invalidKey: "The project's api_key is not a key: printable characters without spaces."
            case .privilegedKey:
                "The project's api_key is a secret or service-role key, which passes over row-level security. "
                    + "Use the publishable (anon) key."
            }
        }
    }

    /// How the servers of a project are laid out under its URL.
    public enum Layout: Sendable, Equatable {
        /// Behind Supabase's gateway: the Auth server is at `/auth/v1`, the project's tables at `/rest/v1`.
        case gateway
        /// The URL is an Auth server itself; there are no tables.
        case bare
    }

    /// Where the Auth server is, without a slash at its end: `https://ref.supabase.co/auth/v1`.
    public let authURL: String
    /// Where the project's tables and functions are, without a slash at its end; nil for a bare Auth server.
    public let restURL: String?
    /// What `iss` of the project's tokens must be where they have one: ``authURL`` unless configured.
    public let issuer: String
    /// The project's publishable key; nil for a bare Auth server.
    let apiKey: Secret?

    /// The date of the error shapes that are read (`{"code": "…", "message": "…"}`).
    static let apiVersion = "2024-01-01"
    /// A TOTP enrolment carries a picture of some 320 kB.
    static let maxAnswer = 1 << 20

    /// A project by its URL.
    ///
    /// Behind a gateway the URL is the project's (`https://ref.supabase.co`, `http://127.0.0.1:54321`, also below a
    /// path); one that already ends in `/auth/v1` is taken as the Auth server's. For a bare server it is used as it is.
    /// `issuer` is for projects whose tokens name another address, such as that of a custom domain.
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
        // The keys of the old form are tokens that say whose they are.
        if let payload = CompactToken(key)?.payload, payload["role"] == "service_role" { throw .privilegedKey }
    }
}

extension SupabaseProject {
    /// A request to the Auth server. `query` is encoded strictly: the server reads a bare `+` as a space.
    func request(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONObject? = nil,
        bearer: Secret? = nil
    ) -> HTTPRequest {
        request(method, at: authURL + path, query: query, body: body, bearer: bearer)
    }

    /// A request to any of the project's servers.
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
            limits: HTTPLimits(maxBody: SupabaseProject.maxAnswer)
        )
    }
}
