import HTTPMessages
import Secrets

/// Gets a refresh token out of a successful answer that is not JSON as we accept it: cut off on the way, followed by a
/// debug message, with a member twice; or a form that was cut off. The provider may have rotated by then, and the token
/// before is dead. Only what the answer certainly says is taken, see ``MemberSalvage``.
enum RefreshTokenSalvage {
    /// Nil without such a token.
    static func token(in response: HTTPResponse) -> Secret? {
        guard ResponseReader.isForm(response) else { return token(in: response.body) }
        // A form that came whole and cannot be read is none: it has no other sign of where it went wrong.
        return response.isTruncated ? formToken(in: response.body) : nil
    }

    /// Of a form that was cut off: only what is followed by a separator is whole.
    private static func formToken(in body: Secret) -> Secret? {
        let bytes = body.revealedBytes()
        guard let end = bytes.lastIndex(of: UInt8(ascii: "&")), let pairs = try? FormEncoding.parse(bytes[..<end])
        else { return nil }
        // The name may be there again in what was cut off.
        let rest = bytes[(end + 1)...].prefix { $0 != UInt8(ascii: "=") }
        let names = pairs.map(\.name) + ((try? FormEncoding.parse(rest)) ?? []).map(\.name)
        guard names.count(where: { $0 == name }) == 1 else { return nil }
        return TokenText.secret(pairs.first { $0.name == name }?.value, allowsSpace: true)
    }

    private static let name = "refresh_token"

    /// Of what should be JSON.
    static func token(in body: Secret) -> Secret? {
        TokenText.secret(MemberSalvage.text(of: name, in: body), allowsSpace: true)
    }
}
