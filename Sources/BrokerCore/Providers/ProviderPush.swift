internal import HTTPMessages
internal import OAuth

/// Authorization requests that go to the provider before the browser does (RFC 9126).
extension Provider {
    /// Pushes the request where the provider offers it or asks for it; nil where it does neither.
    func push(
        _ authorization: AuthorizationRequest, _ metadata: ProviderMetadata, _ registration: ClientRegistration
    ) async throws(BrokerError) -> PushedAuthorization? {
        guard let endpoint = metadata.pushedAuthorizationRequestEndpoint else {
            guard !metadata.requiresPushedAuthorization else {
                throw .misconfigured("The provider takes pushed requests only, but its metadata say nowhere to push.")
            }
            return nil
        }
        let request = PushedAuthorization.request(authorization, registration: registration, endpoint: endpoint)
        let response = try await account.send(request, over: http)
        if !metadata.requiresPushedAuthorization, PushedAuthorization.isAbsent(response) { return nil }
        do throws(OAuthError) {
            return try PushedAuthorization(parsing: response)
        } catch {
            throw BrokerError(error, host: request.host)
        }
    }

    /// Pushes a flow's request once more, as it is.
    func pushAgain(_ flow: AuthorizationFlow) async -> Result<PushedAuthorization?, BrokerError> {
        do throws(BrokerError) {
            let registration = try await registration(flow.metadata)
            return .success(try await push(flow.authorization, flow.metadata, registration))
        } catch {
            return .failure(error)
        }
    }
}

/// What can only fail after the person has signed in is said before.
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
