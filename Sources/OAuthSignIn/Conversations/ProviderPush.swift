internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// Pushed authorization requests (RFC 9126).
extension Provider {
    /// Pushes the request if the provider supports or requires it; nil if the parameters are sent through the browser.
    ///
    /// If pushing is optional and fails for another reason than a rejected client, this request and later ones are sent
    /// through the browser.
    func push(
        _ authorization: AuthorizationRequest, _ metadata: ProviderMetadata, _ registration: ClientRegistration
    ) async throws(BrokerError) -> PushedPage? {
        let isRequired = metadata.requiresPushedAuthorization || rules.pushedRequests == .required
        if rules.pushedRequests == .never { return nil }
        guard let endpoint = metadata.pushedAuthorizationRequestEndpoint else {
            guard !isRequired else {
                throw .misconfigured(
                    "The sign-in of \(account.name) requires pushed authorization requests, but the provider's "
                        + "metadata have no endpoint for them.")
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
            if !error.isOutage { await directory.note(of: habitKey(metadata)) { $0.refusesPushes = true } }
            return nil
        }
    }

    /// Some providers respond to a wrong client id, secret or redirect URI with an empty 403.
    private func unexplainedError(by host: String) -> BrokerError {
        .unusableSetting(
            UnusableSetting(
                "\(host) rejected the pushed authorization request of \(account.name) without a reason (HTTP 403). "
                    + "Compare client_id, the client's secret and redirect_uri with what is registered there.",
                setting: "client_id"))
    }

    /// Pushes a flow's request again, unchanged.
    func pushAgain(_ flow: AuthorizationFlow) async -> Result<PushedPage?, BrokerError> {
        do throws(BrokerError) {
            let registration = try await registration(flow.metadata)
            return .success(try await push(flow.authorization, flow.metadata, registration))
        } catch {
            return .failure(error)
        }
    }
}

/// A request at the provider, which the browser opens by its reference.
struct PushedPage: Sendable {
    let reference: PushedAuthorization
    /// When the provider's response came.
    let since: BootInstant

    var life: PageLife { PageLife(since: since, duration: .seconds(reference.expiresIn)) }
}

/// Checks before the sign-in that its response can be validated.
extension Provider {
    /// Throws if the ID token that the scopes request could not be validated.
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

extension BrokerError {
    /// The provider was not reached or did not work: nothing is known about what it accepts.
    fileprivate var isOutage: Bool {
        switch self {
        case .provider(.unreachable), .provider(.untrusted), .provider(.rateLimited), .provider(.unavailable),
            .provider(.failing):
            true
        default: false
        }
    }
}
