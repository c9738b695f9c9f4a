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
    /// - Throws: `invalid` for a method that is no token (RFC 9110 section 9.1), a URL to which no token may be sent or none
    ///   (nil), and for a nonce with characters that RFC 9449 section 8.1 does not allow.
    public init(method: String, url: WebURL?, nonce: String?) throws(BrokerError) {
        guard (1...64).contains(method.utf8.count), method.utf8.allSatisfy(HTTPFields.isTokenByte) else {
            throw .invalid(field: "method", reason: .stated("it is a method of HTTP, such as GET."))
        }
        guard let url, ["https", "http"].contains(url.scheme), url.isSecure else {
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

/// What a request needs beside its token.
public enum RequestProof: Sendable {
    /// Nothing: the token is bound to no key.
    case unneeded
    case made(Secret)
    /// The URL may be an endpoint of the issuer. Attack: with a proof for the token endpoint, a program could refresh the
    /// session, and with one for another endpoint end it.
    case denied
}

extension ProvedRequest {
    /// True if the URL is that of the account's MCP server, or another one of the same origin.
    public func isAtMCPServer(of name: AccountName, _ broker: Broker) async throws(BrokerError) -> Bool {
        let account = try await broker.signInContext.sessions.account(name)
        return (account.kind as? MCPAccount)?.server.url.origin == url.origin
    }

    /// The proof that the request needs with a token of an account (RFC 9449 section 4.2).
    ///
    /// - Throws: `signInRequired` for a bound token whose key cannot be used.
    public func proof(with issuedToken: IssuedToken, _ broker: Broker) async throws(BrokerError) -> RequestProof {
        let (name, context) = (issuedToken.account, broker.signInContext)
        let account = try await context.sessions.account(name)
        let session = await context.sessions.held(name)
        guard let provider = account.provider(of: session, with: context.tools) else {
            return issuedToken.token.isBound ? .denied : .unneeded
        }
        var homes = [session?.tokenEndpointOrigin, session?.issuer].compactMap(\.self)
        if let metadata = await provider.endpointMetadata(with: context.tools) {
            if metadata.hasEndpoint(at: url) { return .denied }
            homes = [metadata.tokenEndpoint]
        } else if homes.contains(where: { (try? WebURL(parsing: $0))?.origin == url.origin }) {
            // Which URLs of the issuer are endpoints is not known now.
            return .denied
        }
        guard issuedToken.token.isBound else { return .unneeded }
        // A clock that differs from the issuer's is most likely our own.
        let home = homes.first.flatMap { try? WebURL(parsing: $0) }?.origin ?? ""
        let terms = provider.proofs.terms(of: ProofTerms.Server(origin: home, role: .authorization))
        guard let key = issuedToken.proofKey.flatMap(DPoPKey.init(stored:)),
            let proof = key.proof(
                of: method, to: url.text, accessToken: issuedToken.token.value, nonce: nonce,
                now: terms.date(by: provider.proofs.clock))
        else { throw .signInRequired(name) }
        return .made(proof)
    }
}

extension Provider {
    /// How long a proof waits for metadata, which nobody has needed since the daemon's start.
    private static let metadataBound: Duration = .seconds(3)

    /// Nil if they are not known, and do not come now.
    fileprivate func endpointMetadata(with tools: ProviderTools) async -> ProviderMetadata? {
        if case .issuer(let issuer) = rules.endpoints,
            let known = await directory.known(of: account, issuer: issuer)
        {
            return known
        }
        let fetch = tools.work.start { try? await metadata() }
        return await fetch.wait(atMost: Provider.metadataBound) ?? nil
    }
}

extension Account {
    /// The requests to the issuer of a session; nil for a project of Supabase, which binds no tokens, and for an account at an
    /// MCP server whose session names no issuer.
    fileprivate func provider(of session: Session?, with tools: ProviderTools) -> Provider? {
        switch kind {
        case let rules as OAuthAccount: return Provider(self, by: rules, tools)
        case let kind as MCPAccount:
            guard let connection = session.flatMap({ MCPConnection(of: $0, at: kind.server) }) else { return nil }
            let account = at(connection, of: kind, with: tools)
            return Provider(account, by: account.oauth, tools)
        default: return nil
        }
    }
}
