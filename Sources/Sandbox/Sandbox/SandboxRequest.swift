internal import LocalHTTP
internal import RingbackBase

/// A request as the endpoints read it. Malformed escapes are detected here, once.
struct SandboxRequest: Sendable {
    let method: String
    let path: String
    let fields: HTTPFields
    let query: [FormEncoding.Pair]
    let rawQuery: String
    /// Nil unless the body is a form that can be read.
    let form: [FormEncoding.Pair]?
    let body: [UInt8]
    /// False if the query, or a body that is declared to be a form, cannot be read.
    let isWellFormed: Bool

    init(_ request: ServerRequest, path: String) {
        method = request.method == "HEAD" ? "GET" : request.method
        self.path = path
        fields = request.fields
        body = request.body
        rawQuery = request.query ?? ""
        let query = try? FormEncoding.parse(request.query ?? "")
        self.query = query ?? []
        let type = (request.fields["Content-Type"] ?? "").split(separator: ";").first?.lowercased() ?? ""
        let isForm = type.filter { $0 != " " } == "application/x-www-form-urlencoded"
        // oidc-agent does not escape the spaces of `scope`.
        form = isForm ? try? FormEncoding.parse(request.body.map { $0 == 0x20 ? UInt8(ascii: "+") : $0 }) : nil
        isWellFormed = query != nil && (form != nil || !isForm)
    }

    var pairs: [FormEncoding.Pair] { query + (form ?? []) }
    /// The parameters of an endpoint that browsers open: those of the form in a POST, else those of the query.
    var parameters: Parameters { Parameters(method == "POST" ? form ?? [] : query) }

    /// The parameters of a form that clients send. Credentials and tokens must not be in the URL.
    func formParameters() throws -> Parameters {
        let pairs = try unwrap(
            isWellFormed ? form : nil, "invalid_request", "the body is not a form in application/x-www-form-urlencoded")
        try require(query.isEmpty, "invalid_request", "parameters belong into the body")
        let parameters = Parameters(pairs)
        try parameters.requireUnrepeated()
        return parameters
    }

    /// The token of the only `Authorization` field, if its scheme is `Bearer` (RFC 6750 section 2.1).
    var bearer: String? { credentials("bearer") }

    /// The same for any scheme, in lower case.
    func credentials(_ scheme: String) -> String? {
        let lines = fields[all: "Authorization"]
        let words = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: true)
        guard lines.count == 1, words.count == 2, words[0].lowercased() == scheme else { return nil }
        return String(words[1])
    }

    var grantType: String? { (form ?? query).first { $0.name == "grant_type" }?.value }
}

/// Empty parameters count as omitted, repeated ones make the request invalid (RFC 6749 sections 3.1 and 3.2).
struct Parameters: Sendable {
    private let values: [String: String]
    let repeated: Set<String>

    init(_ pairs: [FormEncoding.Pair]) {
        var values: [String: String] = [:]
        var repeated: Set<String> = []
        for pair in pairs where values.updateValue(pair.value, forKey: pair.name) != nil { repeated.insert(pair.name) }
        self.values = values
        self.repeated = repeated
    }

    subscript(name: String) -> String? {
        guard let value = values[name], !value.isEmpty else { return nil }
        return value
    }

    func required(_ name: String) throws -> String { try unwrap(self[name], "invalid_request", "\(name) is missing") }

    func requireUnrepeated() throws {
        if let name = repeated.min() { throw OAuthError("invalid_request", "\(name) is repeated") }
    }

    var scopes: [String]? { self["scope"]?.split(separator: " ").map(String.init) }
}

/// Why an endpoint refuses a request: the members of an error response (RFC 6749 section 5.2).
struct OAuthError: Error, Equatable {
    var code: String
    var description: String
    var status = 400
    /// The scheme of a `WWW-Authenticate` field.
    var challenge: String?

    init(_ code: String, _ description: String, status: Int = 400, challenge: String? = nil) {
        self.code = code
        self.description = description
        self.status = status
        self.challenge = challenge
    }
}

func require(_ isMet: Bool, _ code: String, _ description: String, status: Int = 400, challenge: String? = nil) throws {
    if !isMet { throw OAuthError(code, description, status: status, challenge: challenge) }
}

func requireOffer(_ isOffered: Bool) throws { try require(isOffered, "invalid_request", "not offered", status: 404) }

func unwrap<Value>(
    _ value: Value?, _ code: String, _ description: String, status: Int = 400, challenge: String? = nil
) throws -> Value {
    guard let value else { throw OAuthError(code, description, status: status, challenge: challenge) }
    return value
}

/// The kinds of responses. None may be stored by a cache (RFC 6749 section 5.1).
enum Responses {
    static func json(_ object: JSONObject, status: Int = 200, fields: [(String, String)] = []) -> ServerResponse {
        answer(status, "application/json", object.jsonValue.serialized(), fields)
    }

    /// No `form-action`: browsers also apply it to the redirect after the form, which goes to the client.
    static func page(_ html: String, status: Int = 200, scriptHash: String? = nil) -> ServerResponse {
        let script = scriptHash.map { "; script-src 'sha256-\($0)'" } ?? ""
        let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'" + script
        return answer(
            status, "text/html; charset=utf-8", Array(html.utf8),
            [("Content-Security-Policy", policy), ("X-Frame-Options", "DENY")])
    }

    /// 303, as the request may have had credentials (RFC 9700 4.12). The parameters come after the URL's own.
    static func redirect(to location: String, adding pairs: [(String, String)]) -> ServerResponse {
        let mark = pairs.isEmpty ? "" : location.contains("?") ? "&" : "?"
        return answer(303, "text/plain", [], [("Location", location + mark + FormEncoding.encode(pairs))])
    }

    static var nothing: ServerResponse { text("There is nothing here.", status: 404) }

    static func only(_ methods: String) -> ServerResponse {
        text("This is answered to \(methods) only.", status: 405, fields: [("Allow", methods)])
    }

    static func text(_ text: String, status: Int, fields: [(String, String)] = []) -> ServerResponse {
        answer(status, "text/plain; charset=utf-8", Array((text + "\n").utf8), fields)
    }

    static func catching(_ answer: () throws -> ServerResponse) -> ServerResponse {
        do {
            return try answer()
        } catch {
            let failure = OAuthError("server_error", "The sandbox could not make or use a key.", status: 500)
            return refusal(error as? OAuthError ?? failure)
        }
    }

    static func refusal(_ refusal: OAuthError) -> ServerResponse {
        var fields: [(String, String)] = []
        if let challenge = refusal.challenge {
            let error = challenge != "Basic" ? ", error=\"\(refusal.code)\"" : ""
            fields.append(("WWW-Authenticate", "\(challenge) realm=\"sandbox\"\(error)"))
        }
        let body: JSONObject = ["error": refusal.code, "error_description": refusal.description]
        return json(body, status: refusal.status, fields: fields)
    }

    private static func answer(
        _ status: Int, _ type: String, _ body: [UInt8], _ fields: [(String, String)]
    ) -> ServerResponse {
        let standard = [
            ("Content-Type", type), ("Cache-Control", "no-store"), ("Pragma", "no-cache"),
            ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
        ]
        return ServerResponse(status: status, fields: HTTPFields(standard + fields), body: body)
    }
}
