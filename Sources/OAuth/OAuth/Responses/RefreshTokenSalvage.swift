import Encodings
import HTTPMessages
import Secrets
import StrictJSON

/// Extracts a refresh token from a response that cannot be used as a whole. The provider may have rotated, and the old
/// token is then invalid. Only an unambiguous value is taken:
///
/// - from a success that is not valid JSON (cut off, followed by a debug message, with a member twice), see
///   ``MemberSalvage``; from a form that was cut off;
/// - from a success in which other text is before the object, such as `)]}'`, a function's name or a warning;
/// - from the one token set in a member of the outermost object, in a list or in a text;
/// - from a complete token set whose status is neither a success nor a redirect.
enum RefreshTokenSalvage {
    private static let name = "refresh_token"

    /// The refresh token; nil if there is none.
    static func token(in response: HTTPResponse) -> Secret? {
        guard (200..<300).contains(response.status) else {
            // Redirects come from networks that ask for a sign-in of their own.
            guard !(300..<400).contains(response.status), !response.isTruncated,
                let object = try? ResponseReader.tokenObject(in: response)
            else { return nil }
            return token(ofSet: object)
        }
        guard ResponseReader.isForm(response) else { return token(in: response.body) }
        // If a complete form cannot be parsed, it is unknown where it is damaged, so nothing is taken.
        return response.isTruncated ? formToken(in: response.body) : nil
    }

    /// From a form that was cut off: only a value that is followed by a separator is complete.
    private static func formToken(in body: Secret) -> Secret? {
        let bytes = UnicodeText.utf8(body.revealedBytes())
        guard let end = bytes.lastIndex(of: UInt8(ascii: "&")), let pairs = try? FormEncoding.parse(bytes[..<end])
        else { return nil }
        // The name may occur again at the point where the form was cut off.
        let rest = bytes[(end + 1)...].prefix { $0 != UInt8(ascii: "=") }
        let names = pairs.map(\.name) + ((try? FormEncoding.parse(rest)) ?? []).map(\.name)
        guard names.count(where: { $0 == name }) == 1 else { return nil }
        return TokenText.secret(pairs.first { $0.name == name }?.value, allowsSpace: true)
    }

    /// From a body that should be JSON.
    static func token(in body: Secret) -> Secret? {
        let bytes = UnicodeText.utf8(body.revealedBytes())
        if let token = TokenText.secret(MemberSalvage.text(of: name, in: bytes), allowsSpace: true) { return token }
        if let json = try? JSON(parsing: bytes) { return token(nestedIn: json) }
        guard let object = surroundedObject(in: bytes) else { return nil }
        return TokenText.secret(object[name]?.string, allowsSpace: true) ?? token(nestedIn: .object(object))
    }

    /// From a complete token set: an error response may repeat the refresh token of the request, but has no access
    /// token.
    static func token(ofSet object: JSONObject) -> Secret? {
        guard hasNoError(object), TokenText.secret(object["access_token"]?.string) != nil else { return nil }
        return TokenText.secret(object[name]?.string, allowsSpace: true)
    }

    /// From the only token set one level below an object without tokens.
    static func token(nestedIn json: JSON) -> Secret? {
        let values: [JSON]
        switch json {
        case .object(let object):
            guard hasNoError(object), object[name] == nil, object["access_token"] == nil else { return nil }
            values = object.members.map(\.value)
        case .array(let elements): values = elements
        case .string: values = [json]
        default: return nil
        }
        let sets = values.compactMap(object).filter { $0[name] != nil }
        return sets.count == 1 ? token(ofSet: sets[0]) : nil
    }

    /// The object, which some servers encode a second time, as a text.
    private static func object(_ value: JSON) -> JSONObject? {
        guard let text = value.string else { return value.object }
        return text.utf8.first == UInt8(ascii: "{") ? (try? JSON(parsing: text.utf8))?.object : nil
    }

    private static func hasNoError(_ object: JSONObject) -> Bool {
        switch object["error"] {
        case nil, .null?, .string("")?: true
        default: false
        }
    }

    /// The object at the end of a text that is not JSON; after it there may be only the end of a call. The name must not
    /// occur before. An object inside of one that was cut off is never taken: it is not the first one.
    private static func surroundedObject(in bytes: [UInt8]) -> JSONObject? {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard bytes.first(where: { !isSpace($0) }) != UInt8(ascii: "["),
            let last = bytes.lastIndex(of: UInt8(ascii: "}")),
            bytes[(last + 1)...].allSatisfy({ isSpace($0) || ");".utf8.contains($0) }),
            let start = bytes.indices.first(where: { index in
                bytes[index] == UInt8(ascii: "{")
                    && bytes[(index + 1)...].first { !isSpace($0) } == UInt8(ascii: "\"")
            }), !MemberSalvage.isNamed(name, in: bytes[..<start])
        else { return nil }
        return (try? JSON(parsing: bytes[start...last]))?.object
    }
}
