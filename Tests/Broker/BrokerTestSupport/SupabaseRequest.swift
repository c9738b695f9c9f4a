import RingbackBase

struct SupabaseRequest: Sendable {
    let method: String
    /// Behind `/auth/v1`; of the tables the whole path.
    let path: String
    let query: [String: String]
    let fields: HTTPFields
    let body: JSON
    let bearer: String?

    /// What is asked, without identifiers: `POST /token refresh_token`, `POST /factors/verify`.
    var kind: String {
        let parts = path.split(separator: "/").filter { $0.utf8.count != 36 }
        let word = [query["grant_type"] ?? query["scope"]].compactMap { $0 }
        return (["\(method) /\(parts.joined(separator: "/"))"] + word).joined(separator: " ")
    }

    init(_ request: HTTPRequest) {
        let url = try? WebURL(parsing: request.url)
        let pairs = (try? FormEncoding.parse(url?.query ?? "")) ?? []
        let whole = url?.path ?? ""
        method = request.method
        path = whole.hasPrefix("/auth/v1") ? String(whole.dropFirst("/auth/v1".count)) : whole
        query = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
        fields = request.fields
        body = request.body.flatMap { try? JSON(parsing: $0.revealedBytes()) } ?? .null
        bearer = request.authorization.map { String($0.revealed().dropFirst("Bearer ".count)) }
    }
}
