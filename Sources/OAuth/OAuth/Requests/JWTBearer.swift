public import HTTPMessages
public import Secrets

/// The JWT bearer grant (RFC 7521 section 4.1, RFC 7523 section 2.1): an assertion of an issuer that the server trusts,
/// such as a workload's token, is exchanged for an access token.
extension TokenRequest {
    /// The value of `grant_type`.
    public static let jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    /// Exchanges an assertion. Client authentication and even the client id are optional (RFC 7521 section 4.1);
    /// without them `registration` has an empty client id.
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

/// A token of another issuer that is sent unchanged. It is not parsed here.
public struct Assertion: Sendable, Equatable {
    /// At most 64 KiB of printable ASCII without spaces.
    public let text: Secret

    /// Reads a file's content. White space around the token, as editors and shells leave it, is removed.
    ///
    /// Throws `.misconfigured` if the content is empty, has several words or other characters, or is too long.
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
