public import HTTPMessages
internal import Secrets
internal import StrictJSON

/// How metadata are asked for and read (OpenID Connect Discovery section 4, RFC 8414 section 3). A document counts only
/// if it names the very issuer that was configured, byte for byte: otherwise any issuer could speak for any other.
extension ProviderMetadata {
    /// Where metadata may be, in the order to ask: OpenID Connect's place (appended to the issuer), then RFC 8414's
    /// (between host and path). `.invalid` at one place is no answer for the other: ask on; if both fail, the first
    /// error is the one to tell. Throws `.misconfigured` for an issuer that is none.
    public static func discoveryRequests(issuer: String) throws(OAuthError) -> [HTTPRequest] {
        let parts = try parse(issuer: issuer)
        // Section 4.1 and section 3.1: a slash at the end goes first.
        let path = parts.path.hasSuffix("/") ? String(parts.path.dropLast()) : parts.path
        let authority = String(parts.text.dropLast(parts.path.utf8.count))
        let places = [
            authority + path + "/.well-known/openid-configuration",
            authority + "/.well-known/oauth-authorization-server" + path,
        ]
        return places.map { place in
            HTTPRequest(
                url: place, fields: HTTPFields([("Accept", "application/json")]),
                limits: HTTPLimits(maxBody: HTTPRequest.maxAnswer)
            )
        }
    }

    /// Reads a metadata document that was asked for on behalf of `issuer`.
    ///
    /// - `.unavailable`: 408, 425, 429, 5xx.
    /// - `.invalid`: another status than 200, no JSON object, another issuer, an endpoint that is missing or refused.
    /// - `.misconfigured`: the provider offers no S256, or `issuer` is none.
    public init(parsing response: HTTPResponse, issuer: String) throws(OAuthError) {
        let url = try ProviderMetadata.parse(issuer: issuer)
        try ResponseReader.checkStatus(response, of: .metadata)
        guard response.status == 200 else { throw .invalid(.metadata, reason: "HTTP \(response.status)") }
        let object = try ResponseReader.object(in: response, of: .metadata)
        guard let stated = object["issuer"]?.string else { throw .invalid(.metadata, reason: "no issuer") }
        guard stated.isSameBytes(as: issuer) || IssuerTemplate.mayState(stated, for: url) else {
            throw .invalid(.metadata, reason: IssuerDifference.sentence(stated: stated, configured: issuer))
        }
        try self.init(
            reading: MetadataDocument(object: object, issuer: url), issuer: issuer, idTokenIssuer: stated)
        if let methods = codeChallengeMethods, !methods.contains("S256") {
            throw .misconfigured(reason: "the provider offers no S256")
        }
    }

    /// RFC 8414 section 2: https, no query, no fragment. Plain http only on loopback.
    private static func parse(issuer: String) throws(OAuthError) -> WebURL {
        guard let url = try? WebURL(parsing: issuer), url.isSecure else {
            throw .misconfigured(reason: "the issuer is not an https URL (or http on loopback)")
        }
        guard url.query == nil, url.fragment == nil else {
            throw .misconfigured(reason: "the issuer has a query or a fragment")
        }
        return url
    }
}
