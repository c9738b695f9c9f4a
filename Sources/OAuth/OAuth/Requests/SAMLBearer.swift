internal import Encodings
public import HTTPMessages
public import Secrets

/// The SAML 2.0 bearer grant (RFC 7521 section 4.1, RFC 7522 section 2.1): a SAML assertion of an issuer that the
/// server trusts is exchanged for an access token.
extension TokenRequest {
    /// The value of `grant_type`.
    public static let samlBearerGrant = "urn:ietf:params:oauth:grant-type:saml2-bearer"

    /// Exchanges a SAML assertion. Client authentication and even the client id are optional (RFC 7521 section 4.1);
    /// without them `registration` has an empty client id.
    ///
    /// - Parameter assertion: made by ``Assertion/init(samlIn:)``.
    public static func samlBearer(
        assertion: Assertion, scope: [String]? = nil, audience: String? = nil, resource: String? = nil,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", samlBearerGrant)
        request.appendParameter("assertion", assertion.text)
        request.appendTarget(scope: scope, audience: audience, resource: resource)
        registration.authenticate(&request)
        return request
    }
}

extension Assertion {
    /// The largest SAML assertion in bytes. Its base64url then has at most 64 KiB.
    static let largestSAML = 49_152

    /// Reads a file that holds one SAML assertion, an XML element in UTF-8. White space around it is removed, and the
    /// rest is encoded as base64url without padding (RFC 7522 section 2.1). The XML is not parsed here: its signature
    /// covers each byte.
    ///
    /// Throws `.misconfigured` if the content is empty, is no XML element, or is too long.
    public init(samlIn content: Secret) throws(OAuthError) {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        var bytes = content.revealedBytes()[...]
        // A byte order mark has no meaning in UTF-8.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        let element = Array(bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        guard !element.isEmpty else { throw .misconfigured(reason: "is empty") }
        guard element.first == UInt8(ascii: "<"), element.last == UInt8(ascii: ">"), !element.contains(0),
            String(validating: element, as: UTF8.self) != nil
        else { throw .misconfigured(reason: "holds no SAML assertion: an XML element in UTF-8") }
        guard element.count <= Assertion.largestSAML else {
            throw .misconfigured(reason: "holds more than 48 KiB, the most that a SAML assertion may have")
        }
        text = Secret(bytes: Base64URL.encodeToBytes(element))
    }
}
