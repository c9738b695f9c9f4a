internal import BrokerCore
internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// Checks whether the token endpoint accepts the client: it sends a random authorization code. A server authenticates
/// the client first (RFC 6749 section 3.2.1), so `invalid_grant` means that id and secret are right.
struct ClientDiagnosis: Sendable {
    let provider: Provider
    let metadata: ProviderMetadata

    private static let timeout: Duration = .seconds(6)

    /// The finding; nil if the response tells nothing about the client.
    func finding() async -> Finding? {
        let account = provider.account
        let check = Finding.Check.client
        do throws(BrokerError) {
            let registration = try await provider.registration(metadata)
            let endpoint = metadata.tokenEndpoint
            let redirectURI = account.redirectURI ?? "http://127.0.0.1/callback/\(account.name)"
            let response = try await provider.send(as: registration, at: metadata) { registration in
                var request = TokenRequest.authorizationCode(
                    code: RandomToken.base64URL(bits: 256), verifier: RandomToken.base64URL(bits: 256),
                    redirectURI: redirectURI, registration: registration, endpoint: endpoint)
                request.limits.timeout = ClientDiagnosis.timeout
                return request
            }
            let host = HTTPRequest(url: endpoint).host
            if OAuthError.rejectsClient(
                in: response, codes: ["invalid_client", "unauthorized_client", "incorrect_client_credentials"])
            {
                return Finding(
                    check, .wrong,
                    .oauth(.clientRejected(host: host, hasSecret: registration.authentication != .none)),
                    .clientRefused, setting: "client_id", url: endpoint)
            }
            if response.status == 404 {
                return Finding(
                    check, .wrong, .oauth(.noTokenEndpoint(host: host)), .badResponse,
                    setting: account.configuredProvider == .oauth2 ? "endpoints.token" : nil, url: endpoint)
            }
            do throws(OAuthError) {
                _ = try TokenResponse(reading: response)
            } catch {
                guard case .refused(let errorResponse) = error,
                    ["invalid_grant", "bad_verification_code"].contains(errorResponse.code)
                else { return nil }
                return Finding(check, .ok, .oauth(.clientKnown(host: host)))
            }
            return nil
        } catch {
            // Other findings report errors of the provider itself.
            return Finding(check, mistake: error)
        }
    }
}
