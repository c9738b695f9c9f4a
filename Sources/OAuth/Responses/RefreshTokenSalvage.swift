import HTTPMessages
import Secrets

/// Extracts a refresh token from a successful response that is not valid JSON (cut off, followed by a debug message,
/// with a member twice), or from a form that was cut off. The provider may have rotated, and the old token is then
/// invalid. Only an unambiguous value is taken, see ``MemberSalvage``.
enum RefreshTokenSalvage {
    /// The refresh token; nil if there is none.
    static func token(in response: HTTPResponse) -> Secret? {
        guard ResponseReader.isForm(response) else { return token(in: response.body) }
        // If a complete form cannot be parsed, it is unknown where it is damaged, so nothing is taken.
        return response.isTruncated ? formToken(in: response.body) : nil
    }

    /// From a form that was cut off: only a value that is followed by a separator is complete.
    private static func formToken(in body: Secret) -> Secret? {
        let bytes = body.revealedBytes()
        guard let end = bytes.lastIndex(of: UInt8(ascii: "&")), let pairs = try? FormEncoding.parse(bytes[..<end])
        else { return nil }
        // The name may occur again at the point where the form was cut off.
        let rest = bytes[(end + 1)...].prefix { $0 != UInt8(ascii: "=") }
        let names = pairs.map(\.name) + ((try? FormEncoding.parse(rest)) ?? []).map(\.name)
        guard names.count(where: { $0 == name }) == 1 else { return nil }
        return TokenText.secret(pairs.first { $0.name == name }?.value, allowsSpace: true)
    }

    private static let name = "refresh_token"

    /// From a body that should be JSON.
    static func token(in body: Secret) -> Secret? {
        TokenText.secret(MemberSalvage.text(of: name, in: body), allowsSpace: true)
    }
}
