internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// An error of a Supabase endpoint, in the words of the real server.
///
/// The same error has two forms: the older one, and that of the API version 2024-01-01 for clients that ask for it. The
/// ID-token grant has a third one, whatever the version.
struct SupabaseErrorResponse: Error, Equatable {
    var status: Int
    var code: String
    var message: String
    /// What a weak password lacks: `length`, `characters`, `pwned`.
    var reasons: [String] = []
    /// The third form: `error` and `error_description`, no code, always 400.
    var isOAuth = false

    init(_ status: Int, _ code: String, _ message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    /// The code of most errors in the form of a request.
    static func validation(_ message: String, status: Int = 400) -> SupabaseErrorResponse {
        SupabaseErrorResponse(status, "validation_failed", message)
    }

    static func oauth(_ error: String, _ description: String) -> SupabaseErrorResponse {
        var refusal = SupabaseErrorResponse(400, error, description)
        refusal.isOAuth = true
        return refusal
    }

    /// An unexpected error of the server.
    static let failure = SupabaseErrorResponse(
        500, "unexpected_failure", "Unexpected failure, please check server logs")

    /// The value of `error` in a redirect; nil where the redirect has only `error_code`. That depends on whether it
    /// comes from `/callback`.
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

/// Responses with the header fields of the real server, and no others.
enum SupabaseResponses {
    static func json(_ value: JSON, status: Int = 200, fields: [(String, String)] = []) -> ServerResponse {
        ServerResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")] + fields),
            body: value.serialized())
    }

    static func empty(_ status: Int) -> ServerResponse { ServerResponse(status: status) }

    static func redirect(to location: String, status: Int) -> ServerResponse {
        ServerResponse(status: status, fields: HTTPFields([("Location", location)]))
    }

    /// The router's response to a path that it does not know.
    static func unknownPath() -> ServerResponse {
        ServerResponse(
            status: 404, fields: HTTPFields([("Content-Type", "text/plain; charset=utf-8")]),
            body: Array("404 page not found\n".utf8))
    }

    /// - Parameter version: the value of `X-Supabase-Api-Version` in the request.
    static func refusal(_ refusal: SupabaseErrorResponse, version: String?) -> ServerResponse {
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
