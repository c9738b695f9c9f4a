internal import BrokerCore
internal import Cryptography
internal import HTTPMessages
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
    var pushed: PushedPage?

    var nonce: Secret? { authorization.nonce }
    var scopes: [String] { authorization.scopes }
    /// How the state is stored and looked for: a look-up by hash takes no time that tells about the state.
    var key: [UInt8] { AuthorizationResponse.key(forState: authorization.state) }
    /// What the browser opens.
    var authorizationURL: String { pushed.map { authorization.url(of: $0.reference) } ?? authorization.url() }

    /// Makes the secrets of a new flow.
    init(
        account: Account, request: SignInRequest, metadata: ProviderMetadata, redirectURI: String
    ) throws(BrokerError) {
        let pkce = PKCE()
        try metadata.check(responseMode: account.responseMode, of: account.name)
        let scopes = metadata.requestable(request.scopes ?? account.scopes)
        let source = scopes.contains("openid") ? RandomToken.base64URL(bits: 256) : nil
        do throws(OAuthError) {
            authorization = try AuthorizationRequest(
                endpoint: metadata.authorizationEndpoint, clientID: account.clientID, redirectURI: redirectURI,
                scopes: scopes, state: RandomToken.base64URL(bits: 256),
                nonce: source.map(AuthorizationFlow.digest),
                codeChallenge: pkce.challenge, responseMode: account.responseMode,
                additionalParameters: account.parameters(of: request, for: scopes))
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

extension AuthorizationFlow: AwaitedSignIn {
    var waitingFor: WaitingFor { .callback }
    var proofs: Set<Proof.Kind> { [.callback] }
    var pageLife: PageLife? { pushed?.life }

    /// The state is only known to who was shown the page. `iss` tells whose response it is (RFC 9207).
    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition {
        let response: AuthorizationResponse
        do throws(AuthorizationResponse.Failure) {
            response = try AuthorizationResponse(of: arrival)
        } catch {
            return .ignored(error.explanation)
        }
        guard response.stateKey == key else { return .foreign }
        guard let place = try? WebURL(parsing: arrival.address), let asked = try? WebURL(parsing: redirectURI),
            place.isPlace(of: asked)
        else { return .ignored("It arrived at another address than the one this sign-in asked for.") }
        let isAnnounced = metadata.supportsIssuerInResponse || standing.account.requiresIssuerInResponse
        guard response.check(issuer: metadata.idTokenIssuer, isAdvertised: isAnnounced) else {
            return .ignored("Its issuer (iss) is not the provider of this sign-in.")
        }
        return .genuine
    }

    func expiry(of flow: Flow) -> String {
        var text =
            "The sign-in of \(flow.account.name) was not finished within \(flow.duration.wholeSeconds) seconds. "
            + "Waited for a callback to \(redirectURI)."
        if let pushed {
            text +=
                " Its page's address could be opened for \(pushed.reference.expiresIn) seconds, and once; whoever asks for "
            text += "the sign-in again gets another one."
        }
        return text
    }
}

extension Account {
    /// What an authorization request has beside the parameters of the standard. A refresh token is given for consent
    /// (OpenID Connect Core section 11): `offline_access` without `prompt=consent` is ignored by some providers and
    /// refused by others.
    func parameters(of request: SignInRequest, for scopes: [String]) -> [(String, String)] {
        let parameters = authorizationParameters + request.parameters
        guard asksConsentForOfflineAccess, scopes.contains("openid"), scopes.contains("offline_access"),
            !parameters.contains(where: { $0.0 == "prompt" })
        else { return parameters }
        return parameters + [("prompt", "consent")]
    }
}

extension ProviderMetadata {
    /// The scopes without `offline_access` if the provider lists its scopes and that one is not among them: some refuse
    /// the whole request for it, on a page of their own.
    func requestable(_ scopes: [String]) -> [String] {
        guard let scopesSupported, !scopesSupported.contains("offline_access") else { return scopes }
        return scopes.filter { $0 != "offline_access" }
    }

    /// Metadata that list no response modes offer `query` and `fragment` (RFC 8414 section 2). Endpoints by hand say
    /// nothing about modes: there the configuration's word counts.
    fileprivate func check(responseMode mode: ResponseMode?, of account: AccountName) throws(BrokerError) {
        guard let mode, issuer != nil || responseModes != nil else { return }
        let offered = responseModes ?? ["query", "fragment"]
        guard !offered.contains(mode.rawValue) else { return }
        throw .misconfigured(
            "response_mode = \"\(mode.rawValue)\" cannot be used for \(account): the provider's metadata offer "
                + "\(offered.joined(separator: ", ")). Leave response_mode out.")
    }
}
