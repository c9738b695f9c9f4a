internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// Why a Supabase endpoint refuses, in the words of the real server.
///
/// The same refusal has two shapes: the one that came first, and that of the API version 2024-01-01 for clients that
/// ask for it. The ID-token grant has a third one, for which no version matters.
struct SupabaseRefusal: Error, Equatable {
    var status: Int
    var code: String
    var message: String
    /// What a weak password lacks: `length`, `characters`, `pwned`.
    var reasons: [String] = []
    /// The third shape: `error` and `error_description`, no code, always 400.
    var isOAuth = false

    init(_ status: Int, _ code: String, _ message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    /// The code that most refusals of a request's form have.
    static func validation(_ message: String, status: Int = 400) -> SupabaseRefusal {
        SupabaseRefusal(status, "validation_failed", message)
    }

    static func oauth(_ error: String, _ description: String) -> SupabaseRefusal {
        var refusal = SupabaseRefusal(400, error, description)
        refusal.isOAuth = true
        return refusal
    }

    /// What nobody expected.
    static let failure = SupabaseRefusal(500, "unexpected_failure", "Unexpected failure, please check server logs")

    /// What a redirect says in `error`; nil where it says only `error_code`. The last word has those of `/callback`.
    func redirectError(isCallback: Bool) -> String? {
        if isCallback, ["signup_disabled", "user_banned", "provider_email_needs_verification"].contains(code) {
            return "access_denied"
        }
        switch status {
        case 400: return "invalid_request"
        case 401: return "unauthorized_client"
        case 403: return "access_denied"
        case 500: return "server_error"
        case 503: return "temporarily_unavailable"
        default: return isCallback ? "server_error" : nil
        }
    }
}

/// Answers with the header fields of the real server, and no others.
enum SupabaseAnswers {
    static func json(_ value: JSON, status: Int = 200, fields: [(String, String)] = []) -> ServerResponse {
        ServerResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")] + fields),
            body: value.serialized())
    }

    static func empty(_ status: Int) -> ServerResponse { ServerResponse(status: status) }

    static func redirect(to location: String, status: Int) -> ServerResponse {
        ServerResponse(status: status, fields: HTTPFields([("Location", location)]))
    }

    /// The router's own words for a path that it does not know.
    static func unknownPath() -> ServerResponse {
        ServerResponse(
            status: 404, fields: HTTPFields([("Content-Type", "text/plain; charset=utf-8")]),
            body: Array("404 page not found\n".utf8))
    }

    /// - Parameter version: what the request says in `X-Supabase-Api-Version`.
    static func refusal(_ refusal: SupabaseRefusal, version: String?) -> ServerResponse {
        if refusal.isOAuth {
            return json(
                ["error": .string(refusal.code), "error_description": .string(refusal.message)], status: 400)
        }
        var fields: [(String, String)] = []
        var body: JSONObject
        if isCurrent(version) {
            body = JSONObject([.init("code", .string(refusal.code)), .init("message", .string(refusal.message))])
            fields.append(("X-Supabase-Api-Version", "2024-01-01"))
        } else {
            body = JSONObject([
                .init("code", .integer(refusal.status)), .init("error_code", .string(refusal.code)),
                .init("msg", .string(refusal.message)),
            ])
            if refusal.status >= 500 { body["error_id"] = .string(SupabaseText.uuid()) }
        }
        if !refusal.reasons.isEmpty {
            body["weak_password"] = ["reasons": .array(refusal.reasons.map(JSON.string))]
        }
        fields.append(("x-sb-error-code", refusal.code))
        return json(.object(body), status: refusal.status, fields: fields)
    }

    /// `YYYY-MM-DD`, from 2024-01-01 on; anything else selects the older shape.
    static func isCurrent(_ version: String?) -> Bool {
        guard let version else { return false }
        let parts = version.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [4, 2, 2], parts.joined().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let month = Int(parts[1]), let day = Int(parts[2]), (1...12).contains(month), (1...31).contains(day)
        else { return false }
        return version >= "2024-01-01"
    }
}
