internal import BrokerCore
internal import OAuth
internal import RingbackBase

/// What a sign-in's ID token is validated against, depending on the method of the sign-in.
struct SignInEvidence: Sendable {
    /// The response must have an ID token: the nonce and other requested values can only be validated in it.
    var needsIDToken = false
    var nonce: Secret?
    var code: Secret?
    var maxAge: Int?
}

extension Provider {
    func session(
        of tokens: TokenSet, boundTo key: DPoPKey? = nil, at metadata: ProviderMetadata, askedFor scopes: [String],
        evidence: SignInEvidence
    ) async throws(BrokerError) -> Session {
        var session = try session(of: tokens, at: metadata, askedFor: scopes)
        session.proofKey = key?.stored
        if scopes.contains("openid") { try await adopt(tokens, into: &session, metadata, evidence) }
        try await addUserinfo(to: &session, metadata, tokens.accessToken)
        return session
    }

    /// A session with tokens that are not validated, and without an identity. If `tokens` is nil, it has no tokens.
    func session(
        of tokens: TokenSet?, at metadata: ProviderMetadata, askedFor scopes: [String]
    ) throws(BrokerError) -> Session {
        let origin = try WebURL.origin(of: metadata.tokenEndpoint)
        let asked = scopes.joined(separator: " ")
        var session = Session(
            refreshToken: tokens?.refreshToken,
            scope: tokens?.scope(askedFor: scopes) ?? (asked.isEmpty ? nil : asked),
            issuer: metadata.issuer ?? origin, tokenEndpointOrigin: origin, signedInAt: clock.wallInstant)
        session.end = tokens?.refreshExpiresIn.map { Deadline(in: .seconds($0), by: clock) }
        session.tokens[.own] = tokens.map { accessToken($0, scope: asked) }
        session.attachments[MCPConnection.name] = rules.mcp?.attachment
        return session
    }

    private func adopt(
        _ tokens: TokenSet, into session: inout Session, _ metadata: ProviderMetadata, _ evidence: SignInEvidence
    ) async throws(BrokerError) {
        guard let idToken = tokens.idToken else {
            guard evidence.needsIDToken else { return }
            let host = HTTPRequest(url: metadata.tokenEndpoint).host
            throw .provider(.invalidResponse(.stated("The token response of \(host) has no ID token.")))
        }
        var expected = expectations(metadata)
        expected.nonce = evidence.nonce
        expected.accessToken = tokens.accessToken
        expected.code = evidence.code
        expected.maxAge = evidence.maxAge
        let verified = try await verify(idToken, metadata, expected)
        session.adopt(verified, idToken, by: clock)
    }
}

extension Session {
    /// The claims that are shown to users, and `sub`.
    private static let shownClaims = [
        "sub", "email", "email_verified", "name", "preferred_username", "given_name", "family_name", "nickname",
        "picture", "locale", "phone_number", "phone_number_verified",
    ]

    static func user(from claims: JSONObject, _ more: JSONObject) -> JSONObject {
        JSONObject(
            shownClaims.compactMap { name in
                (more[name] ?? claims[name]).map { JSONObject.Member(name, $0) }
            })
    }

    mutating func adopt(_ verified: IDToken, _ token: Secret, by clock: BrokerClock) {
        subject = verified.subject
        user = Session.user(from: user ?? JSONObject(), verified.claims)
        let former = identity
        var adopted = Identity(
            token: token, expiry: Deadline(at: WallInstant(seconds: verified.expiresAt), by: clock),
            lifetime: verified.expiresAt > verified.issuedAt ? .seconds(verified.expiresAt - verified.issuedAt) : nil,
            audience: verified.audience.sorted())
        adopted.authenticationTime =
            verified.authenticationTime.map { WallInstant(seconds: $0) } ?? former?.authenticationTime
        adopted.authorizedParty = verified.authorizedParty
        adopted.nonce = verified.claims["nonce"]?.string.map { Secret($0) } ?? former?.nonce
        adopted.issuer = verified.issuer
        adopted.nonceSource = former?.nonceSource
        identity = adopted
    }
}
