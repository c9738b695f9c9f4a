import Encodings
import HTTPMessages
import Secrets
import StrictJSON

/// Token responses in form encoding. RFC 6749 does not allow them, but GitHub sends them unless JSON is requested.
/// Names and values mean the same as in JSON, and a repeated name is an error too.
extension ResponseReader {
    /// The token response as an object, from JSON or a form. The body decides, because some servers send either with
    /// the wrong media type.
    static func tokenObject(in response: HTTPResponse) throws(OAuthError) -> JSONObject {
        guard isForm(response) else { return try object(in: response, of: .token) }
        let pairs: [FormEncoding.Pair]
        do {
            pairs = try FormEncoding.parse(trimmed(UnicodeText.utf8(response.body.revealedBytes())))
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

    /// True for a form by its media type, unless the body begins with a brace; and for a body that begins with a name
    /// and an equals sign and has one of the names of a token response.
    static func isForm(_ response: HTTPResponse) -> Bool {
        let body = trimmed(UnicodeText.utf8(response.body.revealedBytes()))
        if mediaType(of: response) == "application/x-www-form-urlencoded" { return body.first != UInt8(ascii: "{") }
        let first = body.prefix { $0 != UInt8(ascii: "=") }
        guard first.count < min(body.count, 64), first.allSatisfy(isNameByte) else { return false }
        return body.split(separator: UInt8(ascii: "&")).contains { pair in
            ["access_token=", "refresh_token=", "error="].contains { pair.starts(with: $0.utf8) }
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// Without surrounding white space; some servers end the body with a line break.
    private static func trimmed(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
