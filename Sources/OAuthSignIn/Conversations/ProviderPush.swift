internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// Authorization requests that go to the provider before the browser does (RFC 9126).
extension Provider {
    /// Pushes the request where the provider offers it or asks for it; nil where the request goes through the browser.
    ///
    /// Where pushing is optional and fails for another reason than the client itself, the request goes through the
    /// browser, and later ones do so at once.
    func push(
        _ authorization: AuthorizationRequest, _ metadata: ProviderMetadata, _ registration: ClientRegistration
    ) async throws(BrokerError) -> PushedPage? {
        let isRequired = metadata.requiresPushedAuthorization || account.pushedRequests == .required
        if account.pushedRequests == .never { return nil }
        guard let endpoint = metadata.pushedAuthorizationRequestEndpoint else {
            guard !isRequired else {
                throw .misconfigured(
                    "The sign-in of \(account.name) takes pushed requests only, but the provider's metadata name no "
                        + "endpoint for them.")
            }
            return nil
        }
        if !isRequired, await habits(metadata).refusesPushes { return nil }
        var isClientRefused = false
        do throws(BrokerError) {
            let response = try await send(as: registration, at: metadata) { registration in
                PushedAuthorization.request(authorization, registration: registration, endpoint: endpoint)
            }
            isClientRefused = PushedAuthorization.rejectsClient(in: response)
            let host = HTTPRequest(url: endpoint).host
            guard response.status != 403 || !response.body.isEmpty else { throw unexplainedError(by: host) }
            do throws(OAuthError) {
                return PushedPage(reference: try PushedAuthorization(parsing: response), since: clock.bootInstant)
            } catch {
                throw BrokerError(error, host: host).unquoting(registration.secret)
            }
        } catch {
            await doubt(error)
            guard !isRequired, !isClientRefused, error != .cancelled else { throw error }
            await directory.note(of: habitKey(metadata)) { $0.refusesPushes = true }
            return nil
        }
    }

    /// Some providers answer a wrong client id, secret and redirect URI alike, without a word.
    private func unexplainedError(by host: String) -> BrokerError {
        .unusableSetting(
            UnusableSetting(
                "\(host) refused the pushed authorization request of \(account.name) without a reason (HTTP status 403). "
                    + "Compare client_id, the client's secret and redirect_uri with what is registered there.",
                setting: "client_id"))
    }
}

/// A request at the provider, which the browser opens by its reference.
struct PushedPage: Sendable {
    let reference: PushedAuthorization
    /// When the provider's response came.
    let since: BootInstant

    var life: PageLife { PageLife(since: since, duration: .seconds(reference.expiresIn)) }
}

/// What could only fail after the user has signed in is checked before.
extension Provider {
    /// Throws if what is asked for could not be checked when it comes.
    func check(_ metadata: ProviderMetadata, for scopes: [String]) throws(BrokerError) {
        guard scopes.contains("openid") else { return }
        guard metadata.issuer != nil, metadata.jwksURI != nil else {
            throw .misconfigured(
                "With the scope openid, \(account.name) needs the provider's issuer and jwks endpoint to check ID tokens."
            )
        }
        do throws(OAuthError) {
            try metadata.checkIDTokens()
        } catch {
            throw BrokerError(error, host: metadata.issuer ?? account.name.rawValue)
        }
    }
}
