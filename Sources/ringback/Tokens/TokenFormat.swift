import Encodings
import RingbackClient
import StrictJSON

/// How `ringback token` prints what it got.
enum TokenFormat: String, CaseIterable, Sendable {
    /// The token alone.
    case raw
    /// `Authorization: Bearer …`, as curl's `-H` takes it.
    case header
    /// The initial response of SASL XOAUTH2 (mail servers), in base64.
    case xoauth2
    /// The initial response of SASL OAUTHBEARER (RFC 7628 section 3.1), in base64.
    case oauthbearer
    /// A JSON object with the header field, as the header helpers of AI tools read it.
    case jsonHeaders = "json-headers"
    /// The daemon's response.
    case json

    /// True if the line contains the user's mail address.
    var needsUser: Bool { self == .xoauth2 || self == .oauthbearer }

    /// The line to print.
    ///
    /// - Throws: `bad_response` for a token with characters that are not allowed in a token: in a header or in a line
    ///   of a protocol, they would add something to it.
    func line(_ answer: JSON, kind: TokenKind?) throws(RingbackError) -> String {
        if self == .json { return answer.visibleText }
        let member = (kind ?? .accessToken).rawValue
        guard let token = answer[member]?.string, !token.isEmpty else {
            throw RingbackError(.badResponse, "The daemon's response has no “\(member)”.")
        }
        guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw RingbackError(
                .badResponse, "The token has characters that are not allowed in a token; it is not shown.")
        }
        switch self {
        case .raw, .json: return token
        case .header: return "Authorization: \(try TokenFormat.scheme(answer)) \(token)"
        case .jsonHeaders:
            let field: JSON = ["Authorization": .string("\(try TokenFormat.scheme(answer)) \(token)")]
            return field.visibleText
        case .xoauth2:
            let address = try TokenFormat.address(answer, "XOAUTH2")
            return Base64.encode("user=\(address)\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8)
        case .oauthbearer:
            // The two characters that the name of RFC 5801 section 4 cannot contain.
            let name = try TokenFormat.address(answer, "OAUTHBEARER").utf8.map { byte in
                byte == UInt8(ascii: ",") ? "=2C" : byte == UInt8(ascii: "=") ? "=3D" : String(UnicodeScalar(byte))
            }
            return Base64.encode("n,a=\(name.joined()),\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8)
        }
    }

    /// The scheme of the header field: the token's type.
    private static func scheme(_ answer: JSON) throws(RingbackError) -> String {
        let type = answer["token_type"]?.string ?? "Bearer"
        guard type.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw RingbackError(.badResponse, "The token's type has characters that no type has.")
        }
        return type.lowercased() == "bearer" ? "Bearer" : type
    }

    private static func address(_ answer: JSON, _ mechanism: String) throws(RingbackError) -> String {
        let address = answer["user"]?["email"]?.string ?? answer["subject"]?.string ?? ""
        guard address.contains("@"), address.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw RingbackError(
                .badResponse, "\(mechanism) needs the account's mail address, and the provider names none.")
        }
        return address
    }
}
