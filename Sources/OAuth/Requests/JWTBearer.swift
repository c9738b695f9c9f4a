public import HTTPMessages
public import Secrets

/// A statement of somebody whom the server trusts, as a grant (RFC 7521 section 4.1, RFC 7523 section 2.1): a workload's
/// own token is traded for one of the server's.
extension TokenRequest {
    /// The grant's name on the wire.
    public static let jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    /// Trades an assertion. The client need not prove itself, nor even be named (RFC 7521 section 4.1): then
    /// `registration` has no client id.
    public static func jwtBearer(
        assertion: Assertion, scope: [String]? = nil, audience: String? = nil, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", jwtBearerGrant)
        request.appendParameter("assertion", assertion.text)
        request.appendTarget(scope: scope, audience: audience, resource: resource)
        registration.authenticate(&request)
        return request
    }
}

/// A token of somebody else's making that is presented as it is: nobody here looks into it.
public struct Assertion: Sendable, Equatable {
    /// At most 64 KiB of printable ASCII without spaces.
    public let text: Secret

    /// Reads a file's content: the token, and the white space around it that editors and shells leave.
    ///
    /// Throws `.misconfigured` for what is no token: nothing, several words, other characters, too much.
    public init(parsing content: Secret) throws(OAuthError) {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        let bytes = content.revealedBytes()
        let trimmed = Array(bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        guard !trimmed.isEmpty else { throw .misconfigured(reason: "is empty") }
        guard let text = TokenText.secret(String(decoding: trimmed, as: UTF8.self)) else {
            throw .misconfigured(reason: "holds no token: one word of printable ASCII, up to 64 KiB")
        }
        self.text = text
    }
}
