internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON

/// The first look at every answer: is it there, is it JSON, is it an error, and in which of the shapes that the Auth
/// server, its hooks, the database, the gateway and what stands before it write.
///
/// `code` is a number in the old shape, a word in the new one, a word of the database's in a third; the ID-token grant
/// writes `error` alone. The word is `code` where the answer says its version or names a code that is known, else
/// `error_code`, else the header that repeats it, else `error`.
enum ErrorReading {
    /// The body of a success; throws what anything else means.
    static func success(_ response: HTTPResponse) throws(SupabaseError) {
        guard !(200..<300).contains(response.status) else {
            // Half an answer may say the opposite of the whole one.
            guard !response.isTruncated else { throw .invalid(reason: "the answer was cut off on the way") }
            return
        }
        throw error(response)
    }

    /// The JSON of a success.
    static func json(_ response: HTTPResponse) throws(SupabaseError) -> JSON {
        try success(response)
        guard !response.body.isEmpty else {
            throw .invalid(reason: "an empty answer (HTTP \(response.status))")
        }
        do {
            return try JSON(parsing: response.body.revealedBytes())
        } catch {
            throw .invalid(reason: "\(shape(of: response)) (HTTP \(response.status))")
        }
    }

    /// The JSON object of a success.
    static func object(_ response: HTTPResponse) throws(SupabaseError) -> JSONObject {
        guard let object = try json(response).object else {
            throw .invalid(reason: "JSON, but not an object (HTTP \(response.status))")
        }
        return object
    }

    /// What an answer that is no success means.
    static func error(_ response: HTTPResponse) -> SupabaseError {
        let status = response.status
        if (300..<400).contains(status) {
            // A followed redirect would carry tokens to a host that nobody configured.
            return .invalid(reason: "redirect refused (HTTP \(status))")
        }
        guard !response.isTruncated,
            let object = try? JSON(parsing: response.body.revealedBytes()).object,
            let refusal = refusal(object, response)
        else { return withoutShape(response) }
        return .refused(refusal)
    }

    /// The no in a body; nil if the body is none of the Auth server's and none of the database's.
    private static func refusal(_ object: JSONObject, _ response: HTTPResponse) -> SupabaseError.Refusal? {
        let texts = [object["msg"], object["message"], object["error_description"], object["error"]]
        let message = PlainText.message(texts.compactMap { $0?.string }.first { !$0.isEmpty })
        let database = databaseCode(object, response)
        guard let code = code(object, response) ?? (database == nil ? nil : "database_error") else { return nil }
        let weaknesses = object["weak_password"]?["reasons"]?.array?.compactMap { PlainText.code($0.string) } ?? []
        return SupabaseError.Refusal(
            code: weaknesses.isEmpty ? code : "weak_password", status: response.status, message: message,
            weaknesses: weaknesses, retryAfter: retryAfter(response, message), databaseCode: database)
    }

    private static func code(_ object: JSONObject, _ response: HTTPResponse) -> String? {
        if let code = object["code"]?.string, isVersioned(response) || SupabaseCode.all.contains(code) {
            return PlainText.code(code)
        }
        // `error` alone is always said with 400; the gateway has an `error` of its own.
        let error = response.status == 400 ? object["error"]?.string : nil
        let words = [object["error_code"]?.string, response.fields["x-sb-error-code"], error]
        if let code = words.lazy.compactMap(PlainText.code).first { return code }
        // A hook's error in the old shape: the status alone, and the hook's words.
        return object["code"]?.integer != nil && object["msg"] != nil ? "unknown" : nil
    }

    /// The server repeats the version on errors alone, and only if one was asked for.
    private static func isVersioned(_ response: HTTPResponse) -> Bool {
        guard let version = response.fields["X-Supabase-Api-Version"], version.utf8.count == 10 else { return false }
        return version >= SupabaseProject.apiVersion
    }

    /// The database's own word: SQLSTATE (five characters) or `PGRST…`, in the shape of the tables' server.
    private static func databaseCode(_ object: JSONObject, _ response: HTTPResponse) -> String? {
        guard !isVersioned(response), let code = object["code"]?.string, object["message"] != nil else { return nil }
        let isWord = code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        return isWord && (code.utf8.count == 5 || (code.hasPrefix("PGRST") && code.utf8.count <= 10)) ? code : nil
    }

    /// Seconds: the gateway's header, or the server's words ("you can only request this after 59 seconds.").
    private static func retryAfter(_ response: HTTPResponse, _ message: String?) -> Int? {
        if let seconds = RetryAfter.seconds(in: response.fields) { return seconds }
        guard response.status == 429, let words = message?.split(separator: " ") else { return nil }
        for (number, unit) in zip(words, words.dropFirst()) where unit.hasPrefix("second") {
            guard number.utf8.count <= 6, number.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
            return Int(number).map { min($0, RetryAfter.longest) }
        }
        return nil
    }

    /// Answers in nobody's shape: the gateway's, a proxy's, a captive portal's.
    private static func withoutShape(_ response: HTTPResponse) -> SupabaseError {
        let status = response.status
        let retryAfter = RetryAfter.seconds(in: response.fields)
        switch status {
        case 429: return .refused(.init(code: "over_request_rate_limit", status: 429, retryAfter: retryAfter))
        case 540: return .misconfigured(reason: "The project is paused (HTTP 540).")
        case 408, 425, 500...: return .unavailable(status: status, retryAfter: retryAfter)
        case 401: return .misconfigured(reason: "The gateway does not take the project's api_key (HTTP 401).")
        case 403 where gatewaySays("api key", response):
            return .misconfigured(reason: "The gateway does not take the project's api_key (HTTP 403).")
        case 404, 405:
            return .misconfigured(reason: "There is no Auth server at the project's url (HTTP \(status)).")
        default: return .invalid(reason: "\(shape(of: response)) (HTTP \(status))")
        }
    }

    private static func gatewaySays(_ words: String, _ response: HTTPResponse) -> Bool {
        let message = (try? JSON(parsing: response.body.revealedBytes()))?["message"]?.string
        return message?.lowercased().contains(words) ?? false
    }

    private static func shape(of response: HTTPResponse) -> String {
        let isPage = response.fields["Content-Type"]?.lowercased().hasPrefix("text/html") ?? false
        if response.body.isEmpty { return "an empty answer" }
        return isPage ? "a web page in place of JSON" : "not the JSON of a Supabase project"
    }
}
