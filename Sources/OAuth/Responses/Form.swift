import HTTPMessages
import Secrets
import StrictJSON

/// Token responses in form encoding. RFC 6749 does not allow them, but GitHub sends them unless JSON is requested.
/// Names and values mean the same as in JSON, and a repeated name is an error too.
extension ResponseReader {
    /// The token response as an object, from JSON or a form. A body that begins with a brace is read as JSON, because
    /// some servers send JSON with the wrong media type.
    static func tokenObject(in response: HTTPResponse) throws(OAuthError) -> JSONObject {
        guard isForm(response) else { return try object(in: response, of: .token) }
        let pairs: [FormEncoding.Pair]
        do {
            pairs = try FormEncoding.parse(trimmed(response.body.revealedBytes()))
        } catch {
            throw .invalid(.token, reason: "a form that is not well-formed (HTTP \(response.status))")
        }
        var names: Set<String> = []
        var members: [JSONObject.Member] = []
        for pair in pairs {
            guard names.insert(pair.name).inserted else {
                throw .invalid(.token, reason: "a form with a repeated name (HTTP \(response.status))")
            }
            members.append(.init(pair.name, .string(pair.value)))
        }
        guard !members.isEmpty else { throw .invalid(.token, reason: "an empty response (HTTP \(response.status))") }
        return JSONObject(members)
    }

    static func isForm(_ response: HTTPResponse) -> Bool {
        mediaType(of: response) == "application/x-www-form-urlencoded" && !beginsWithBrace(response.body)
    }

    private static func beginsWithBrace(_ body: Secret) -> Bool {
        body.revealedBytes().first { !isSpace($0) } == UInt8(ascii: "{")
    }

    /// Without surrounding white space; some servers end the body with a line break.
    private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
