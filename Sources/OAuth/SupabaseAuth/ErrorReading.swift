internal import Encodings
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON

/// The first step for every response: checks whether it is a success and JSON, and otherwise reads the error. Errors
/// come from the Auth server, its hooks, the database, the gateway and proxies, each in their own form.
///
/// The member `code` is a number in the old form, an error code in the new form, and a database code from the database.
/// The ID token grant sends only `error`. The error code is taken from `code` if the response has the API version or
/// the code is known; otherwise from `error_code`, then from the header field with the same content, then from `error`.
enum ErrorReading {
    /// Returns for a success; otherwise throws the error.
    static func success(_ response: HTTPResponse) throws(SupabaseError) {
        guard !(200..<300).contains(response.status) else {
            // A truncated response may have lost content that changes its meaning.
            guard !response.isTruncated else { throw .invalid(reason: "the response was truncated") }
            return
        }
        throw error(response)
    }

    /// The JSON of a success. Throws for other responses.
    static func json(_ response: HTTPResponse) throws(SupabaseError) -> JSON {
        try success(response)
        guard !response.body.isEmpty else {
            throw .invalid(reason: "an empty response (HTTP \(response.status))")
        }
        do {
            return try JSON(parsing: UnicodeText.utf8(response.body.revealedBytes()))
        } catch {
            throw .invalid(reason: "\(shape(of: response)) (HTTP \(response.status))")
        }
    }

    /// The JSON object of a success. Throws for other responses.
    static func object(_ response: HTTPResponse) throws(SupabaseError) -> JSONObject {
        guard let object = try json(response).object else {
            throw .invalid(reason: "JSON, but not an object (HTTP \(response.status))")
        }
        return object
    }

    /// The error for a response that is not a success.
    static func error(_ response: HTTPResponse) -> SupabaseError {
        let status = response.status
        if (300..<400).contains(status) {
            // Following a redirect could send tokens to a host that is not configured.
            return .invalid(reason: "a redirect, which is not followed (HTTP \(status))")
        }
        guard !response.isTruncated,
            let object = try? JSON(parsing: UnicodeText.utf8(response.body.revealedBytes())).object,
            let errorResponse = errorResponse(object, response)
        else { return withoutShape(response) }
        return .refused(errorResponse)
    }

    /// The error response in a body; nil if it has the form of neither the Auth server nor the database.
    private static func errorResponse(_ object: JSONObject, _ response: HTTPResponse) -> SupabaseError.ErrorResponse? {
        let texts = [object["msg"], object["message"], object["error_description"], object["error"]]
        let message = PlainText.message(texts.compactMap { $0?.string }.first { !$0.isEmpty })
        let database = databaseCode(object, response)
        guard let code = code(object, response) ?? (database == nil ? nil : "database_error") else { return nil }
        let weaknesses = object["weak_password"]?["reasons"]?.array?.compactMap { PlainText.code($0.string) } ?? []
        return SupabaseError.ErrorResponse(
            code: weaknesses.isEmpty ? code : "weak_password", status: response.status, message: message,
            weaknesses: weaknesses, retryAfter: retryAfter(response, message), databaseCode: database)
    }

    private static func code(_ object: JSONObject, _ response: HTTPResponse) -> String? {
        if let code = object["code"]?.string, isVersioned(response) || SupabaseCode.all.contains(code) {
            return PlainText.code(code)
        }
        // `error` without `error_code` is always sent with status 400. The gateway also sends an `error`, with other
        // statuses.
        let error = response.status == 400 ? object["error"]?.string : nil
        let words = [object["error_code"]?.string, response.fields["x-sb-error-code"], error]
        if let code = words.lazy.compactMap(PlainText.code).first { return code }
        // An auth hook's error in the old form: the status as `code`, and the hook's message.
        return object["code"]?.integer != nil && object["msg"] != nil ? "unknown" : nil
    }

    /// True if the error has the new form. The server repeats the version only in error responses.
    private static func isVersioned(_ response: HTTPResponse) -> Bool {
        guard let version = response.fields["X-Supabase-Api-Version"], version.utf8.count == 10 else { return false }
        return version >= SupabaseProject.apiVersion
    }

    /// The database's code in the form of PostgREST: SQLSTATE (five characters) or `PGRST…`.
    private static func databaseCode(_ object: JSONObject, _ response: HTTPResponse) -> String? {
        guard !isVersioned(response), let code = object["code"]?.string, object["message"] != nil else { return nil }
        let isWord = code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        return isWord && (code.utf8.count == 5 || (code.hasPrefix("PGRST") && code.utf8.count <= 10)) ? code : nil
    }

    /// Seconds from `Retry-After`, or from the message ("you can only request this after 59 seconds.").
    private static func retryAfter(_ response: HTTPResponse, _ message: String?) -> Int? {
        if let seconds = RetryAfter.seconds(in: response.fields) { return seconds }
        guard response.status == 429, let words = message?.split(separator: " ") else { return nil }
        for (number, unit) in zip(words, words.dropFirst()) where unit.hasPrefix("second") {
            guard number.utf8.count <= 6, number.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
            // The server rounds down.
            return Int(number).map { min(max($0, 1), RetryAfter.longest) }
        }
        return nil
    }

    /// The error for responses of the gateway, a proxy or a captive portal.
    private static func withoutShape(_ response: HTTPResponse) -> SupabaseError {
        let status = response.status
        let retryAfter = RetryAfter.seconds(in: response.fields)
        switch status {
        case 429: return .refused(.init(code: "over_request_rate_limit", status: 429, retryAfter: retryAfter))
        case 540: return .misconfigured(reason: "The project is paused (HTTP 540).")
        case 408, 425, 500...: return .unavailable(status: status, retryAfter: retryAfter)
        case 401: return .misconfigured(reason: "The gateway does not accept the project's api_key (HTTP 401).")
        case 403 where gatewaySays("api key", response):
            return .misconfigured(reason: "The gateway does not accept the project's api_key (HTTP 403).")
        case 404, 405:
            return .misconfigured(reason: "There is no Auth server at the project's url (HTTP \(status)).")
        default: return .invalid(reason: "\(shape(of: response)) (HTTP \(status))")
        }
    }

    private static func gatewaySays(_ words: String, _ response: HTTPResponse) -> Bool {
        let message = (try? JSON(parsing: UnicodeText.utf8(response.body.revealedBytes())))?["message"]?.string
        return message?.lowercased().contains(words) ?? false
    }

    private static func shape(of response: HTTPResponse) -> String {
        let isPage = response.fields["Content-Type"]?.lowercased().hasPrefix("text/html") ?? false
        if response.body.isEmpty { return "an empty response" }
        return isPage ? "a web page in place of JSON" : "not the JSON of a Supabase project"
    }
}
