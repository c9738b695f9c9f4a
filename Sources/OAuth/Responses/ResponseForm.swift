import HTTPMessages
import Secrets
import StrictJSON

/// Token answers as a form, which RFC 6749 never allowed and GitHub sends where nobody asks for JSON. Its names and
/// values mean what the members of the same name mean; a name twice is refused, as it is there.
extension ResponseReader {
    /// The answer of a token endpoint as an object, whichever way it is written. What looks like JSON is read as JSON:
    /// some servers name it wrongly, and no form begins with a brace.
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
                throw .invalid(.token, reason: "a form with a name twice (HTTP \(response.status))")
            }
            members.append(.init(pair.name, .string(pair.value)))
        }
        guard !members.isEmpty else { throw .invalid(.token, reason: "an empty answer (HTTP \(response.status))") }
        return JSONObject(members)
    }

    static func isForm(_ response: HTTPResponse) -> Bool {
        mediaType(of: response) == "application/x-www-form-urlencoded" && !beginsWithBrace(response.body)
    }

    private static func beginsWithBrace(_ body: Secret) -> Bool {
        body.revealedBytes().first { !isSpace($0) } == UInt8(ascii: "{")
    }

    /// Without the line break that some servers end a body with.
    private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
