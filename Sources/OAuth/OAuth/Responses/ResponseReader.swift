import Encodings
import HTTPMessages
import Secrets
import StrictJSON

/// The checks that are common to all responses of providers: status, JSON, error. A status that means "later" is never
/// treated as an error response, whatever the body says, because proxies send bodies too.
enum ResponseReader {
    /// Throws for responses that say nothing about the request: status 408, 425, 429, 5xx, redirects, and truncated
    /// ones.
    static func checkStatus(_ response: HTTPResponse, of kind: OAuthError.Response) throws(OAuthError) {
        switch response.status {
        case 408, 425, 429, 500...599:
            throw failure(response, kind) ?? unavailable(response, kind)
        case 300..<400:
            // Following a redirect could send codes and tokens to a host that is not configured.
            throw .invalid(kind, reason: "a redirect, which is not followed (HTTP \(response.status))")
        default: break
        }
        // A truncated response may mean the opposite of the complete one.
        switch response.truncation {
        case nil: break
        case .tooLarge?: throw .invalid(kind, reason: "the response is larger than Ringback accepts")
        default: throw .invalid(kind, reason: "the response was truncated")
        }
    }

    /// What an error response says for people: OAuth's `error_description`, or the member that the server has in its
    /// place. Nil if it says nothing.
    static func statedText(in object: JSONObject) -> String? {
        let names = ["error_description", "message", "msg", "detail", "errorSummary", "error_message", "description"]
        let details = object["detail"]?.array ?? object["errors"]?.array ?? []
        let nested = details.first.flatMap { $0["message"] ?? $0["msg"] ?? $0["detail"] ?? $0 }
        let texts = names.map { object[$0] } + [object["error"]?["message"], nested, object["title"]]
        return texts.lazy.compactMap { CheckedText.description($0?.string) }.first
    }

    /// A 5xx response with an OAuth error. Whatever the error is, it proves nothing about the grant.
    private static func failure(_ response: HTTPResponse, _ kind: OAuthError.Response) -> OAuthError? {
        guard response.status >= 500, !response.isTruncated, [.token, .pushedAuthorization].contains(kind),
            let object = try? object(in: response, of: kind)
        else { return nil }
        let stated = try? errorResponse(in: object, status: response.status, of: kind)
        let foreign = statedText(in: object).map {
            OAuthError.ErrorResponse(code: OAuthError.unspecified, message: $0, status: response.status)
        }
        guard let errorResponse = stated ?? foreign else { return nil }
        return .failing(errorResponse, retryAfter: RetryAfter.seconds(in: response.fields))
    }

    static func unavailable(_ response: HTTPResponse, _ kind: OAuthError.Response) -> OAuthError {
        .unavailable(kind, status: response.status, retryAfter: RetryAfter.seconds(in: response.fields))
    }

    /// The body as a JSON object. Throws `.invalid`.
    static func object(in response: HTTPResponse, of kind: OAuthError.Response) throws(OAuthError) -> JSONObject {
        guard !response.body.isEmpty else {
            throw .invalid(kind, reason: "an empty response (HTTP \(response.status))")
        }
        let json: JSON
        do {
            json = try JSON(parsing: UnicodeText.utf8(response.body.revealedBytes()))
        } catch {
            throw .invalid(kind, reason: "\(shape(of: response, error)) (HTTP \(response.status))")
        }
        guard let object = json.object else {
            throw .invalid(kind, reason: "JSON, but not an object (HTTP \(response.status))")
        }
        return object
    }

    private static func shape(of response: HTTPResponse, _ error: JSONError) -> String {
        if let coding = response.fields["Content-Encoding"], !coding.isEmpty {
            return "a body with the content coding \(CheckedText.code(coding)), which cannot be decoded"
        }
        return mediaType(of: response) == "text/html" ? "a web page in place of JSON" : "not JSON: \(error)"
    }

    /// The media type in lower case, without parameters.
    static func mediaType(of response: HTTPResponse) -> String? {
        guard let value = response.fields["Content-Type"] else { return nil }
        let type = value.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        return String(decoding: type, as: UTF8.self).lowercased()
    }

    /// The OAuth error in a response (RFC 6749 section 5.2), also in the nested forms of some servers. Nil without an
    /// `error`. Throws `.invalid` if it is not a text.
    static func errorResponse(
        in object: JSONObject, status: Int, of kind: OAuthError.Response
    ) throws(OAuthError) -> OAuthError.ErrorResponse? {
        switch object["error"] {
        case nil, .null?, .string("")?: return nil
        case .string(let code)?:
            return OAuthError.ErrorResponse(
                code: CheckedText.code(code), message: statedText(in: object), status: status)
        case .object(let nested)?:
            let words = [nested["code"]?.string, nested["status"]?.string, nested["type"]?.string]
            let code = words.compactMap { $0 }.first { !$0.isEmpty } ?? nested["code"]?.integer.map(String.init)
            return OAuthError.ErrorResponse(
                code: CheckedText.code(code ?? OAuthError.unspecified), message: statedText(in: object), status: status)
        default: throw .invalid(kind, reason: "an error that is not text (HTTP \(status))")
        }
    }
}
