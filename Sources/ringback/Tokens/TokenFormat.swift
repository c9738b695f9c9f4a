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
    /// The daemon's response.
    case json

    /// The line to print.
    ///
    /// - Throws: `bad_response` for a token with characters that are not allowed in a token: in a header or in a line
    ///   of a protocol, they would add something to it.
    func line(_ answer: JSON, kind: String?) throws(RingbackError) -> String {
        if self == .json { return answer.visibleText }
        let member = kind == "id_token" ? "id_token" : "access_token"
        guard let token = answer[member]?.string, !token.isEmpty else {
            throw RingbackError(.badResponse, "The daemon's response has no “\(member)”.")
        }
        guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw RingbackError(
                .badResponse, "The token has characters that are not allowed in a token; it is not shown.")
        }
        switch self {
        case .raw, .json: return token
        case .header:
            let type = answer["token_type"]?.string ?? "Bearer"
            guard type.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw RingbackError(.badResponse, "The token's type has characters that no type has.")
            }
            return "Authorization: \(type.lowercased() == "bearer" ? "Bearer" : type) \(token)"
        case .xoauth2:
            let address = answer["user"]?["email"]?.string ?? answer["subject"]?.string ?? ""
            guard address.contains("@"), address.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw RingbackError(
                    .badResponse, "XOAUTH2 needs the account's mail address, and the provider names none.")
            }
            return TokenFormat.base64("user=\(address)\u{1}auth=Bearer \(token)\u{1}\u{1}")
        }
    }

    /// RFC 4648 section 4.
    static func base64(_ text: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                output.append(place <= group.count ? alphabet[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}
