internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// The kinds of responses. None may be stored by a cache (RFC 6749 section 5.1).
enum Responses {
    static func json(_ value: JSON, status: Int = 200, fields: [(String, String)] = []) -> ServerResponse {
        answer(status, "application/json", value.serialized(), fields)
    }

    /// A page. The policy names no `form-action`: browsers also apply it to the redirect that follows the form, and
    /// that goes to the client.
    static func page(_ html: String, status: Int = 200, scriptHash: String? = nil) -> ServerResponse {
        let script = scriptHash.map { "; script-src 'sha256-\($0)'" } ?? ""
        let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'" + script
        return answer(
            status, "text/html; charset=utf-8", Array(html.utf8),
            [("Content-Security-Policy", policy), ("X-Frame-Options", "DENY")])
    }

    /// 303, since the browser may have sent credentials in the request (RFC 9700 section 4.12).
    static func redirect(to location: String) -> ServerResponse {
        answer(303, "text/plain", [], [("Location", location)])
    }

    /// The same, with parameters after those that the URL has.
    static func redirect(to location: String, adding pairs: [(String, String)]) -> ServerResponse {
        redirect(to: location + (location.contains("?") ? "&" : "?") + FormEncoding.encode(pairs))
    }

    static func text(_ text: String, status: Int, fields: [(String, String)] = []) -> ServerResponse {
        answer(status, "text/plain; charset=utf-8", Array((text + "\n").utf8), fields)
    }

    static func refusal(_ refusal: ErrorResponse) -> ServerResponse {
        var fields: [(String, String)] = []
        if let challenge = refusal.challenge {
            let error = challenge == "Bearer" ? ", error=\"\(refusal.code)\"" : ""
            fields.append(("WWW-Authenticate", "\(challenge) realm=\"sandbox\"\(error)"))
        }
        let body: JSON = ["error": .string(refusal.code), "error_description": .string(refusal.description)]
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
