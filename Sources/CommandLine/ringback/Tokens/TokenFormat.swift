import Adapters
import Encodings
import RingbackClient
import StrictJSON

/// How `ringback token` prints what it got.
enum TokenFormat: String, CaseIterable, Sendable {
    /// The token alone.
    case raw
    /// `Authorization: Bearer …`, as curl's `-H` takes it; with an origin, the lines that it states.
    case header
    /// The initial response of SASL XOAUTH2 (mail servers), in base64.
    case xoauth2
    /// The initial response of SASL OAUTHBEARER (RFC 7628 section 3.1), in base64.
    case oauthbearer
    /// A JSON object with the header field, as the header helpers of AI tools read it.
    case jsonHeaders = "json-headers"
    /// A line of a netrc file, for an origin.
    case netrc
    /// An assignment to a variable, for a POSIX shell.
    case env
    /// The daemon's response.
    case json

    /// True if the line contains the user's mail address.
    var needsUser: Bool { self == .xoauth2 || self == .oauthbearer }

    /// What to print, without the last line break.
    ///
    /// - Parameter variable: the name for ``env``.
    /// - Throws: `bad_response` for a token with characters that are not allowed in a token: in a header or in a line
    ///   of a protocol, they would add something to it.
    func text(_ printed: PrintedToken, variable: String) throws(RingbackError) -> String {
        if self == .json { return printed.json.visibleText }
        let token = try printed.token
        switch self {
        case .raw, .json: return token
        case .header: return try printed.fields().map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        case .jsonHeaders:
            return JSON.object(JSONObject(try printed.fields().map { .init($0.name, .string($0.value)) })).visibleText
        case .xoauth2:
            let user = try printed.user(for: "XOAUTH2")
            return Base64.encode("user=\(user)\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8)
        case .oauthbearer:
            // The two characters that the name of RFC 5801 section 4 cannot contain.
            let name: [UInt8] = try printed.user(for: "OAUTHBEARER").utf8.flatMap { byte in
                byte == UInt8(ascii: ",") ? Array("=2C".utf8) : byte == UInt8(ascii: "=") ? Array("=3D".utf8) : [byte]
            }
            return Base64.encode("n,a=".utf8 + name + Array(",\u{1}auth=Bearer \(token)\u{1}\u{1}".utf8))
        case .netrc: return try printed.netrc()
        case .env: return TokenLine.assignment(to: variable, token)
        }
    }
}
