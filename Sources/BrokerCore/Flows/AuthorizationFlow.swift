internal import Cryptography
internal import OAuth
internal import Secrets

/// What a flow by authorization code knows: the request as it was sent, and the secrets that its answer must fit.
struct AuthorizationFlow: Sendable {
    let metadata: ProviderMetadata
    let redirectURI: String
    let authorization: AuthorizationRequest
    let pkce: PKCE
    /// What the nonce is the SHA-256 of, in hexadecimal: whoever is shown the ID token later may ask for it.
    let nonceSource: Secret?
    /// The request at the provider, if it was pushed there (RFC 9126).
    var pushed: PushedAuthorization?
    /// When it was, in seconds since boot.
    var pushedAt = 0

    var nonce: Secret? { authorization.nonce }
    var scopes: [String] { authorization.scopes }
    /// How the state is stored and looked for: a look-up by hash takes no time that tells about the state.
    var key: [UInt8] { AuthorizationResponse.key(forState: authorization.state) }
    /// What the browser opens.
    var authorizationURL: String { pushed.map(authorization.url(of:)) ?? authorization.url() }

    /// Makes the secrets of a new flow.
    init(
        account: Account, request: SignInRequest, metadata: ProviderMetadata, redirectURI: String
    ) throws(BrokerError) {
        let pkce = PKCE()
        if let mode = account.responseMode, let offered = metadata.responseModes, !offered.contains(mode) {
            throw .misconfigured("The provider of \(account.name) has no response mode \(mode).")
        }
        let scopes = request.scopes ?? account.scopes
        let source = scopes.contains("openid") ? RandomToken.base64URL(bits: 256) : nil
        do throws(OAuthError) {
            authorization = try AuthorizationRequest(
                endpoint: metadata.authorizationEndpoint, clientID: account.clientID, redirectURI: redirectURI,
                scopes: scopes, state: RandomToken.base64URL(bits: 256),
                nonce: source.map(AuthorizationFlow.digest),
                codeChallenge: pkce.challenge, responseMode: account.responseMode,
                additionalParameters: account.authorizationParameters + request.parameters)
        } catch {
            throw BrokerError(error, host: account.name.rawValue)
        }
        self.metadata = metadata
        self.redirectURI = redirectURI
        self.pkce = pkce
        nonceSource = source
    }

    static func digest(of source: Secret) -> Secret { Secret(Digest.hex(Digest.sha256(source.revealedBytes()))) }
}
