internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase

/// A flow with an authorization code: the request as it was sent, and the secrets that its response is checked against.
struct AuthorizationFlow: Sendable {
    let metadata: ProviderMetadata
    let redirectURI: String
    /// Every response must carry `iss`, whatever the metadata say.
    let requiresIssuer: Bool
    let authorization: AuthorizationRequest
    let pkce: PKCE
    /// The value whose SHA-256, in hexadecimal, is the nonce. A server that receives the ID token later may require it.
    let nonceSource: Secret?
    /// Who issues the tokens, for an account at an MCP server.
    let mcp: MCPConnection?
    /// The key to which the tokens are to be bound, for all pages of the flow; nil if they are not.
    let proofKey: DPoPKey?
    /// For which user the page is meant.
    let guidance: UserGuidance
    /// The pushed request, if it was pushed (RFC 9126).
    var pushed: PushedPage?

    var nonce: Secret? { authorization.nonce }
    var scopes: [String] { authorization.scopes }
    /// The digest by which the flow is found. The time that a look-up by digest takes reveals nothing about the state.
    var key: [UInt8] { AuthorizationResponse.key(forState: authorization.state) }
    var authorizationURL: String {
        pushed.map { authorization.url(of: $0.reference, isPushRequired: metadata.requiresPushedAuthorization) }
            ?? authorization.url()
    }

    init(
        at provider: Provider, request: SignInRequest, metadata: ProviderMetadata, redirectURI: String,
        guidance: UserGuidance = UserGuidance(), proofKey: DPoPKey? = nil
    ) throws(BrokerError) {
        let (account, rules) = (provider.account, provider.rules)
        let pkce = PKCE()
        let scopes = request.scopes ?? account.scopes
        let source = scopes.contains("openid") ? RandomToken.base64URL(bits: 256) : nil
        var authorization = try BrokerError.reading(
            from: account.name.rawValue,
            try AuthorizationRequest(
                endpoint: metadata.authorizationEndpoint, clientID: account.clientID, redirectURI: redirectURI,
                scopes: scopes, state: RandomToken.base64URL(bits: 256), nonce: source.map(AuthorizationFlow.digest),
                codeChallenge: pkce.challenge, responseMode: rules.responseMode, resource: rules.mcp?.resource,
                additionalParameters: rules.parameters(of: request, for: scopes, guidance, metadata, at: account)))
        authorization.keyThumbprint = proofKey?.thumbprint
        self.authorization = authorization
        self.proofKey = proofKey
        self.metadata = metadata
        self.redirectURI = redirectURI
        requiresIssuer = rules.requiresIssuerInResponse
        self.pkce = pkce
        nonceSource = source
        mcp = rules.mcp
        self.guidance = guidance
    }

    static func digest(of source: Secret) -> Secret { Secret(Digest.hex(Digest.sha256(source.revealedBytes()))) }
}

extension AuthorizationFlow: AwaitedSignIn {
    var waitingFor: WaitingFor { .callback }
    var proofs: Set<Proof.Kind> { [.callback] }
    var pageLife: PageLife? { pushed?.life }

    /// Only the provider and the browser of the sign-in know the state. `iss` names the provider that sent the response
    /// (RFC 9207).
    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition {
        let response: AuthorizationResponse
        do throws(AuthorizationResponse.Failure) {
            response = try AuthorizationResponse(of: arrival)
        } catch {
            return .ignored(Reason(error))
        }
        guard response.stateKey == key else { return .foreign }
        guard let place = try? WebURL(parsing: arrival.address), let asked = try? WebURL(parsing: redirectURI),
            place.isPlace(of: asked)
        else { return .ignored(.otherAddress) }
        let isAnnounced = metadata.supportsIssuerInResponse || requiresIssuer
        guard response.check(issuer: metadata.idTokenIssuer, isAdvertised: isAnnounced) else {
            let stated = response.issuer.flatMap { $0.utf8.count <= 300 ? try? WebURL(parsing: $0) : nil }
            return .ignored(
                .oauth(
                    .wrongIssuerInCallback(
                        expected: metadata.idTokenIssuer, stated: stated?.text, isMissing: response.issuer == nil)))
        }
        return .genuine
    }

    func expiry(of flow: Flow) -> Reason {
        .oauth(
            .noCallback(
                flow.account.name, seconds: flow.duration.wholeSeconds, redirectURI: redirectURI,
                pushed: pushed?.reference.expiresIn))
    }
}

extension OAuthAccount {
    /// The additional parameters of an authorization request. OpenID Connect Core section 11 requires consent for
    /// `offline_access`: without `prompt=consent` some providers ignore this scope, and others reject the request.
    fileprivate func parameters(
        of request: SignInRequest, for scopes: [String], _ guidance: UserGuidance, _ metadata: ProviderMetadata,
        at account: Account
    ) -> [(String, String)] {
        let parameters = account.authorizationParameters + request.parameters
        let asksForConsent =
            asksConsentForOfflineAccess && scopes.contains("openid") && scopes.contains("offline_access")
        let prompt = guidance.prompt(asksForConsent: asksForConsent, metadata, at: account).map { ("prompt", $0) }
        return parameters
            + [prompt, guidance.hint(at: metadata)].compactMap(\.self).filter { added in
                !parameters.contains { $0.0 == added.0 }
            }
    }
}
