import HTTPMessages
import Secrets
import StrictJSON

/// The first look at any answer of a provider, the same for all: is it there, is it JSON, is it an error. Statuses that
/// mean "later" are never taken for a "no", whatever their body says: proxies write bodies too.
enum ResponseReader {
    /// Throws for answers that say nothing about the request: 408, 425, 429, 5xx, redirects, and what was cut off.
    static func checkStatus(_ response: HTTPResponse, of answer: OAuthError.Answer) throws(OAuthError) {
        switch response.status {
        case 408, 425, 429, 500...599:
            throw failure(response, answer) ?? unavailable(response, answer)
        case 300..<400:
            // A followed redirect would carry codes and tokens to a host that nobody configured.
            throw .invalid(answer, reason: "redirect refused (HTTP \(response.status))")
        default: break
        }
        // Half an answer may say the opposite of the whole one.
        guard !response.isTruncated else { throw .invalid(answer, reason: "the answer was cut off on the way") }
    }

    /// A failure that says why. Whatever its words are, they prove nothing about the grant.
    private static func failure(_ response: HTTPResponse, _ answer: OAuthError.Answer) -> OAuthError? {
        guard response.status >= 500, !response.isTruncated, [.token, .pushedAuthorization].contains(answer),
            let object = try? object(in: response, of: answer),
            let refusal = try? refusal(in: object, status: response.status, of: answer)
        else { return nil }
        return .failing(refusal, retryAfter: RetryAfter.seconds(in: response.fields))
    }

    static func unavailable(_ response: HTTPResponse, _ answer: OAuthError.Answer) -> OAuthError {
        .unavailable(answer, status: response.status, retryAfter: RetryAfter.seconds(in: response.fields))
    }

    /// The body as a JSON object.
    static func object(in response: HTTPResponse, of answer: OAuthError.Answer) throws(OAuthError) -> JSONObject {
        guard !response.body.isEmpty else {
            throw .invalid(answer, reason: "an empty answer (HTTP \(response.status))")
        }
        let json: JSON
        do {
            json = try JSON(parsing: response.body.revealedBytes())
        } catch {
            let isPage = mediaType(of: response) == "text/html"
            throw .invalid(
                answer,
                reason: isPage
                    ? "a web page in place of JSON (HTTP \(response.status))"
                    : "not JSON: \(error) (HTTP \(response.status))"
            )
        }
        guard let object = json.object else {
            throw .invalid(answer, reason: "JSON, but not an object (HTTP \(response.status))")
        }
        return object
    }

    /// The lower-cased media type without its parameters.
    static func mediaType(of response: HTTPResponse) -> String? {
        guard let value = response.fields["Content-Type"] else { return nil }
        let type = value.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        return String(decoding: type, as: UTF8.self).lowercased()
    }

    /// The OAuth error in an answer (RFC 6749 section 5.2), also in the nested forms that some servers send.
    /// Nil without an `error`; one that is no text at all is `.invalid`.
    static func refusal(
        in object: JSONObject, status: Int, of answer: OAuthError.Answer
    ) throws(OAuthError) -> OAuthError.Refusal? {
        switch object["error"] {
        case nil, .null?, .string("")?: return nil
        case .string(let code)?:
            return OAuthError.Refusal(
                code: CheckedText.code(code), message: CheckedText.description(object["error_description"]?.string),
                status: status
            )
        case .object(let nested)?:
            let words = [nested["code"]?.string, nested["status"]?.string, nested["type"]?.string]
            let code = words.compactMap { $0 }.first { !$0.isEmpty } ?? nested["code"]?.integer.map(String.init)
            return OAuthError.Refusal(
                code: CheckedText.code(code ?? "unspecified_error"),
                message: CheckedText.description(nested["message"]?.string), status: status
            )
        default: throw .invalid(answer, reason: "an error that is not text (HTTP \(status))")
        }
    }
}
