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

    /// True if the authorization endpoint or the token endpoint says that it does not know the client.
    func isRejected() async -> Bool {
        if await authorizationRejection() != nil { return true }
        return await finding()?.cause == .clientRefused
    }

    /// The finding if the authorization endpoint shows an error in place of its page. It shows errors of the client
    /// and of the redirect URI itself (RFC 6749 section 4.1.2.1), so that a sign-in waits for a callback that never
    /// comes.
    func authorizationRejection() async -> Finding? {
        let account = provider.account
        // A server that requires pushed requests refuses all others.
        guard !provider.requiresPushes(metadata),
            let request = try? AuthorizationRequest(
                endpoint: metadata.authorizationEndpoint, clientID: account.clientID,
                redirectURI: (account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)")
                    .replacing("{port}", with: "49152"),
                scopes: metadata.requestable(account.scopes), state: RandomToken.base64URL(bits: 256),
                nonce: account.scopes.contains("openid") ? RandomToken.base64URL(bits: 256) : nil,
                codeChallenge: PKCE().challenge, responseMode: provider.rules.responseMode,
                resource: provider.rules.mcp?.resource, additionalParameters: account.authorizationParameters)
        else { return nil }
        var page = HTTPRequest(url: request.url(), fields: HTTPFields([("Accept", "text/html, application/json")]))
        page.limits.timeout = ClientDiagnosis.timeout
        guard let response = try? await account.send(page, toProvider: provider.http),
            OAuthError.rejectsAuthorization(in: response)
        else { return nil }
        return Finding(
            .client, .wrong,
            .oauth(
                .pageRejectsClient(
                    host: HTTPRequest(url: metadata.authorizationEndpoint).host, status: response.status,
                    message: OAuthError.statedText(in: response))),
            .clientRefused, setting: "client_id", url: metadata.authorizationEndpoint)
    }

    /// The finding; of a configured account's client also what the authorization endpoint says.
    func finding(of subject: DiagnosisSubject) async -> Finding? {
        let atTokenEndpoint = await finding()
        guard subject == .configured, atTokenEndpoint?.level != .wrong else { return atTokenEndpoint }
        return await authorizationRejection() ?? atTokenEndpoint
    }

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
