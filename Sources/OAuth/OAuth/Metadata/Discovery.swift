public import RingbackBase

/// Requests for metadata and their responses (OpenID Connect Discovery section 4, RFC 8414 section 3). The document
/// must name exactly the configured issuer, byte for byte. Otherwise any issuer could publish metadata for another one.
extension ProviderMetadata {
    /// The locations of metadata and their order.
    public enum DiscoveryOrder: Sendable {
        /// OpenID Connect's location (appended to the issuer), then RFC 8414's (between host and path).
        case openID
        /// The Model Context Protocol's: RFC 8414's location, OpenID Connect's name at the same place, then, for an
        /// issuer with a path, OpenID Connect's own location.
        case mcp
    }

    /// The requests to try in order. If one fails with `.invalid`, try the next; if all fail, report the first error.
    /// Throws `.misconfigured` if `issuer` is not a valid issuer.
    public static func discoveryRequests(
        issuer: String, order: DiscoveryOrder = .openID
    ) throws(OAuthError) -> [HTTPRequest] {
        let parts = try parse(issuer: issuer)
        // A trailing slash is removed first (OpenID Connect Discovery section 4.1, RFC 8414 section 3.1).
        let path = parts.path.hasSuffix("/") ? String(parts.path.dropLast()) : parts.path
        let authority = String(parts.text.dropLast(parts.path.utf8.count))
        let openID = authority + path + "/.well-known/openid-configuration"
        let server = authority + "/.well-known/oauth-authorization-server" + path
        let places =
            switch order {
            case .openID: [openID, server]
            case .mcp where path.isEmpty: [server, openID]
            case .mcp: [server, authority + "/.well-known/openid-configuration" + path, openID]
            }
        return places.map { .document(at: $0) }
    }

    /// Reads the metadata document of `issuer`. Throws:
    /// - `.unavailable`: status 408, 425, 429 or 5xx.
    /// - `.invalid`: another status than 200, no JSON object, another issuer, or a token endpoint that is missing or
    ///   not allowed. Not every request needs the other members, see ``unusableMembers``.
    /// - `.misconfigured`: `issuer` is not a valid issuer.
    public init(parsing response: HTTPResponse, issuer: String) throws(OAuthError) {
        let url = try ProviderMetadata.parse(issuer: issuer)
        try ResponseReader.checkStatus(response, of: .metadata)
        guard response.status == 200 else { throw .invalid(.metadata, reason: "HTTP \(response.status)") }
        let object = try ResponseReader.object(in: response, of: .metadata)
        guard let stated = object["issuer"]?.string else { throw .invalid(.metadata, reason: "no issuer") }
        guard stated.isSameBytes(as: issuer) || IssuerTemplate.mayState(stated, for: url) else {
            throw .invalid(.metadata, reason: IssuerDifference.sentence(stated: stated, configured: issuer))
        }
        try self.init(reading: .init(object: object, issuer: url), issuer: issuer, idTokenIssuer: stated)
    }

    /// Throws `.misconfigured` if no authorization request can be sent: there is no endpoint for it, or the provider
    /// does not support S256.
    public func checkAuthorizationRequests() throws(OAuthError) {
        guard !authorizationEndpoint.isEmpty else {
            let reason = unusableMembers.first { $0.hasPrefix("authorization_endpoint ") }
            throw .misconfigured(reason: reason ?? "the provider's metadata have no authorization_endpoint")
        }
        if let methods = codeChallengeMethods, !methods.contains("S256") {
            throw .misconfigured(reason: "the provider does not support S256 (PKCE)")
        }
    }

    /// True if the metadata say that the provider supports S256. The Model Context Protocol requires that; other
    /// clients send S256 anyway.
    public var announcesPKCE: Bool { codeChallengeMethods?.contains("S256") == true }

    /// RFC 8414 section 2: https without query and fragment. Plain http is allowed only on loopback.
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

/// Microsoft's directories share one issuer location, `…/common/v2.0`, whose metadata contain a template as issuer,
/// `…/{tenantid}/v2.0`. It is accepted only if the configured issuer is the same text with an alias in place of the
/// directory. A token's `iss` may differ from the template only in the directory's id, which must equal its `tid`.
enum IssuerTemplate {
    private static let placeholder = "{tenantid}"
    private static let aliases = ["common", "organizations", "consumers"]

    /// True if metadata of the configured issuer may have this template as issuer.
    static func mayState(_ stated: String, for configured: WebURL) -> Bool {
        guard let (prefix, suffix) = parts(of: stated), suffix.isEmpty || suffix.hasPrefix("/") else { return false }
        // The alias must be a whole path segment, never a part of the host.
        let authority = configured.text.dropLast(configured.path.utf8.count)
        guard prefix.hasSuffix("/"), prefix.hasPrefix(authority) else { return false }
        return aliases.contains { (prefix + $0 + suffix).isSameBytes(as: configured.text) }
    }

    /// True if the issuer of a token or callback is the expected one, byte for byte, or that of any directory of a
    /// template. `tenant`, if given, must be this directory.
    static func admits(_ stated: String, expected: String, tenant: String?) -> Bool {
        guard let (prefix, suffix) = parts(of: expected) else { return stated.isSameBytes(as: expected) }
        guard stated.hasPrefix(prefix), stated.hasSuffix(suffix),
            stated.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return false }
        let directory = String(stated.utf8.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count)) ?? ""
        guard isDirectoryID(directory), (prefix + directory + suffix).isSameBytes(as: stated) else { return false }
        return tenant.map { $0.isSameBytes(as: directory) } ?? true
    }

    static func isTemplate(_ issuer: String) -> Bool { parts(of: issuer) != nil }

    /// The text before and after the placeholder; nil if there is not exactly one. Braces are not allowed in URLs, so
    /// no real issuer is taken for a template.
    private static func parts(of text: String) -> (prefix: String, suffix: String)? {
        let pieces = text.split(separator: placeholder, omittingEmptySubsequences: false)
        return pieces.count == 2 ? (String(pieces[0]), String(pieces[1])) : nil
    }

    /// True for 8-4-4-4-12 hexadecimal digits.
    static func isDirectoryID(_ text: String) -> Bool {
        let groups = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return groups.map(\.count) == [8, 4, 4, 4, 12]
            && groups.allSatisfy { group in
                group.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
                    default: false
                    }
                }
            }
    }
}

enum IssuerDifference {
    static func sentence(stated: String, configured: String) -> String {
        let words = CheckedText.description(stated) ?? ""
        return "the issuer in it is “\(words)”, the configured one is “\(configured)”\(hint(stated, configured))"
    }

    private static func hint(_ stated: String, _ configured: String) -> String {
        if stated == configured + "/" { return "; the configured one lacks the slash at the end" }
        if configured == stated + "/" { return "; the configured one has a slash at the end" }
        let schemes = [stated, configured].map { $0.prefix { $0 != ":" } }
        if Set(schemes) == ["http", "https"], stated.drop(while: { $0 != ":" }) == configured.drop(while: { $0 != ":" })
        {
            return "; one has http, the other https"
        }
        return ""
    }
}
