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
}
