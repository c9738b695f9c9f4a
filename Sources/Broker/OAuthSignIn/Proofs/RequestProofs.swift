public import BrokerCore
internal import OAuth
public import RingbackBase

/// A request that a program is about to send to a server of an account, as a proof (RFC 9449) names it.
public struct ProvedRequest: Sendable {
    let method: String
    /// What is after `?` is in no proof.
    public let url: WebURL
    let nonce: String?

    /// - Parameter nonce: the last one that the server stated in `DPoP-Nonce`.
    /// - Throws: `invalid` for a method that is no token (RFC 9110 section 9.1), a URL to which no token may be sent, and
    ///   for a nonce with characters that RFC 9449 section 8.1 does not allow.
    public init(method: String, url text: String, nonce: String?) throws(BrokerError) {
        guard (1...64).contains(method.utf8.count), method.utf8.allSatisfy(HTTPFields.isTokenByte) else {
            throw .invalid(field: "method", reason: .stated("it is a method of HTTP, such as GET."))
        }
        guard let url = try? WebURL(parsing: text), ["https", "http"].contains(url.scheme), url.isSecure else {
            throw .invalid(
                field: "url", reason: .stated("it is an https URL (http on this machine) without a user name."))
        }
        guard nonce.map(DPoPNonce.isNonce) ?? true else {
            throw .invalid(
                field: "nonce",
                reason: .stated("it is what the server stated in DPoP-Nonce, \(DPoPNonce.maxLength) bytes at most."))
        }
        (self.method, self.url, self.nonce) = (method, url, nonce)
    }
}

extension IssuedToken {
    /// The proof for one request with this token (RFC 9449 section 4.2); nil for a token that is not bound to a key.
    ///
    /// - Throws: `signInRequired` for a bound token whose key cannot be used.
    public func proof(for request: ProvedRequest, at now: WallInstant) throws(BrokerError) -> Secret? {
        guard token.isBound else { return nil }
        guard let key = proofKey.flatMap(DPoPKey.init(stored:)),
            let proof = key.proof(
                of: request.method, to: request.url.text, accessToken: token.value, nonce: request.nonce,
                now: now.seconds)
        else { throw .signInRequired(account) }
        return proof
    }
}

extension Broker {
    /// True if the URL is that of the account's MCP server, or another one of the same origin.
    public func isAtMCPServer(_ url: WebURL, _ name: AccountName) async throws(BrokerError) -> Bool {
        let account = try await signInContext.sessions.account(name)
        return (account.kind as? MCPAccount)?.server.url.origin == url.origin
    }

    /// True if the issuer of the account's session may take the URL for one of its endpoints but userinfo. If its metadata
    /// are not known and cannot be fetched now, that is everything at the issuer and beside the token endpoint.
    public func isIssuersEndpoint(_ url: WebURL, of name: AccountName) async throws(BrokerError) -> Bool {
        let account = try await signInContext.sessions.account(name)
        let session = await signInContext.sessions.held(name)
        let provider: Provider
        switch account.kind {
        case let rules as OAuthAccount: provider = Provider(account, by: rules, signInContext.tools)
        case let kind as MCPAccount:
            guard let connection = session.flatMap({ MCPConnection(of: $0, at: kind.server) }) else { return true }
            let found = account.at(connection, of: kind, with: signInContext.tools)
            provider = Provider(found, by: found.oauth, signInContext.tools)
        default: return false
        }
        if let metadata = try? await provider.metadata() { return metadata.hasEndpoint(at: url) }
        let homes = [session?.tokenEndpointOrigin, session?.issuer].compactMap {
            $0.flatMap { try? WebURL(parsing: $0) }
        }
        return homes.contains { $0.origin == url.origin }
    }
}
