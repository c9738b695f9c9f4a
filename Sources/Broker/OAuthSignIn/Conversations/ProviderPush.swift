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
        let isRequired = requiresPushes(metadata)
        if rules.pushedRequests == .never { return nil }
        guard let endpoint = metadata.pushedAuthorizationRequestEndpoint else {
            // The setting may have changed since the sign-in began.
            try checkPushes(metadata)
            return nil
        }
        if !isRequired, await habits(metadata).refusesPushes { return nil }
        var isClientRefused = false
        do throws(BrokerError) {
            let response = try await send(as: registration, at: metadata, under: nil) { registration in
                PushedAuthorization.request(authorization, registration: registration, endpoint: endpoint)
            }
            isClientRefused = PushedAuthorization.rejectsClient(in: response)
            let host = HTTPRequest(url: endpoint).host
            guard response.status != 403 || !response.body.isEmpty else { throw unexplainedError(by: host) }
            do throws(OAuthError) {
                return PushedPage(reference: try PushedAuthorization(parsing: response), since: clock.bootInstant)
            } catch {
                throw BrokerError(error, of: response, host: host).unquoting(registration.secret)
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
            UnusableSetting(.oauth(.pushRefused(account.name, host: host)), setting: "client_id"))
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

/// A pushed request, which the browser opens by its reference.
struct PushedPage: Sendable {
    let reference: PushedAuthorization
    /// When the provider's response came.
    let since: BootInstant

    var life: PageLife { PageLife(since: since, duration: .seconds(reference.expiresIn)) }
}

extension BrokerError {
    /// The provider was not reached or did not work: nothing is known about what it accepts.
    fileprivate var isOutage: Bool {
        switch self {
        case .provider(.unreachable), .provider(.untrusted), .provider(.wrongScheme), .provider(.rateLimited),
            .provider(.unavailable), .provider(.failing):
            true
        default: false
        }
    }
}
