internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase
internal import SessionVault

/// Checks whether the token endpoint accepts the client: it sends a random authorization code. A server authenticates
/// the client first (RFC 6749 section 3.2.1), so `invalid_grant` means that id and secret are right.
struct ClientDiagnosis: Sendable {
    let provider: Provider
    let metadata: ProviderMetadata

    /// The account is to be added, and no sign-in has shown yet that its client is right.
    var isCandidate = false

    private static let timeout: Duration = .seconds(6)

    func isRejected() async -> Bool {
        if await authorizationRejection() != nil { return true }
        return await finding()?.cause == .clientRefused
    }

    /// The finding if the authorization endpoint shows an error in place of its page, as for errors of the client and
    /// the redirect URI (RFC 6749 section 4.1.2.1): a sign-in would wait for a callback that never comes.
    func authorizationRejection() async -> Finding? {
        let resource = provider.rules.mcp?.resource
        guard let rejection = await authorizationRejection(resource) else { return nil }
        // Some servers, such as Entra, refuse the parameter itself, and show that on their page only.
        guard resource != nil, await authorizationRejection(nil) == nil else { return rejection }
        guard case .pageRejectsClient(let host, _, let message)? = rejection.message.ofOAuth else { return rejection }
        return Finding(
            .page, .wrong, .oauth(.mcpResourceRefused(provider.account.name, host: host, message: message)),
            .configuration, setting: "resource_parameter")
    }

    private func authorizationRejection(_ resource: String?) async -> Finding? {
        let account = provider.account
        // A server that requires pushed requests refuses all others.
        guard !provider.requiresPushes(metadata),
            let request = try? AuthorizationRequest(
                endpoint: metadata.authorizationEndpoint, clientID: account.clientID,
                redirectURI: (account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)")
                    .replacing("{port}", with: "49152"),
                scopes: account.scopes, state: RandomToken.base64URL(bits: 256),
                nonce: account.scopes.contains("openid") ? RandomToken.base64URL(bits: 256) : nil,
                codeChallenge: PKCE().challenge, responseMode: provider.rules.responseMode,
                resource: resource, additionalParameters: account.authorizationParameters)
        else { return nil }
        var page = HTTPRequest(url: request.url(), fields: HTTPFields([("Accept", "text/html, application/json")]))
        page.limits.timeout = ClientDiagnosis.timeout
        guard let response = try? await account.send(page, toProvider: provider.http),
            OAuthError.rejectsAuthorization(in: response)
        else { return nil }
        let rejection = OAuthReason.pageRejectsClient(
            host: HTTPRequest(url: metadata.authorizationEndpoint).host, status: response.status,
            message: OAuthError.statedText(in: response))
        return Finding(
            .client, .wrong, .oauth(rejection), .clientRefused, setting: "client_id",
            url: metadata.authorizationEndpoint)
    }

    /// The finding; of a configured account's client also what the authorization endpoint says.
    func finding(of subject: DiagnosisSubject) async -> Finding? {
        var found = await finding()
        if subject == .configured, found?.level != .wrong { found = await authorizationRejection() ?? found }
        if found?.cause == .clientRefused { found?.terms = await provider.registrationTerms() }
        return found
    }

    func finding() async -> Finding? {
        let account = provider.account
        let check = Finding.Check.client
        let (endpoint, host) = (metadata.tokenEndpoint, HTTPRequest(url: metadata.tokenEndpoint).host)
        do throws(BrokerError) {
            let registration = try await provider.registration(metadata)
            let response = try await provider.send(
                as: registration, at: metadata, provenBy: try provider.proofs.newKey(metadata), under: nil, request)
            if response.rejectsClient {
                return Finding(
                    check, .wrong,
                    .oauth(.clientRejected(host: host, hasSecret: registration.authentication != .none)),
                    .clientRefused, setting: "client_id", url: endpoint)
            }
            if response.status == 404 {
                return Finding(
                    check, .wrong, .stated("\(host) has no token endpoint at this URL (HTTP 404)."), .badResponse,
                    setting: account.configuredProvider == .oauth2 ? "endpoints.token" : nil, url: endpoint)
            }
            do throws(OAuthError) {
                _ = try TokenResponse(reading: response)
            } catch {
                guard case .refused(let errorResponse) = error else { return nil }
                switch errorResponse.code {
                case "unauthorized_client":
                    return Finding(
                        check, .warning,
                        .stated(
                            "\(host) knows this client, but does not allow it to sign users in (unauthorized_client): "
                                + "allow the client the authorization code grant there."))
                case "invalid_grant", "bad_verification_code":
                    guard try await isSecretChecked(of: registration) else {
                        return Finding(check, .warning, .oauth(.secretNotChecked(host: host)))
                    }
                    return Finding(check, .ok, .oauth(.clientKnown(host: host)))
                default: return nil
                }
            }
            return nil
        } catch {
            // Other findings report errors of the provider itself.
            return Finding(check, mistake: error)
        }
    }

    private func request(_ registration: ClientRegistration) -> HTTPRequest {
        let account = provider.account
        var request = TokenRequest.authorizationCode(
            code: RandomToken.base64URL(bits: 256), verifier: RandomToken.base64URL(bits: 256),
            redirectURI: account.redirectURI ?? "http://127.0.0.1/callback/\(account.name)",
            registration: registration, endpoint: metadata.tokenEndpoint)
        request.limits.timeout = ClientDiagnosis.timeout
        return request
    }

    /// Some servers check the code before the client: they answer a wrong secret as a right one. True if this one
    /// rejects a secret that is certainly wrong, the client has none, or sign-ins show that it is right.
    private func isSecretChecked(of registration: ClientRegistration) async throws(BrokerError) -> Bool {
        guard isCandidate, registration.secret != nil else { return true }
        let adapted = await provider.adapted(registration, to: metadata)
        let wrong = ClientRegistration(
            clientID: adapted.clientID, authentication: adapted.authentication, secret: RandomToken.base64URL(bits: 256)
        )
        return try await provider.account.send(request(wrong), toProvider: provider.http).rejectsClient
    }
}

extension ClientDiagnosis {
    /// The finding if the provider's page accepts that redirect URI, and rejects it with a port; nil otherwise.
    func portFinding() async -> Finding? {
        let account = provider.account
        let template = account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)"
        let slot = VaultSlot(account: account.name.rawValue, binding: account.binding.text, kind: .registration)
        guard template.contains(":{port}"), (try? await provider.vault.load(slot)) != nil,
            let free = await status(of: template.replacing(":{port}", with: ":49152")), (400..<500).contains(free),
            let fixed = await status(of: template.replacing(":{port}", with: "")), fixed < 400
        else { return nil }
        let host = HTTPRequest(url: metadata.authorizationEndpoint).host
        let text =
            "\(host) compares the port of the redirect URI, and the client is registered without one: no sign-in can "
            + "succeed. Register the client again with a fixed port."
        return Finding(.redirect, .wrong, .stated(text), .configuration, setting: "redirect_uri")
    }

    private func status(of redirectURI: String) async -> Int? {
        let request = try? AuthorizationRequest(
            endpoint: metadata.authorizationEndpoint, clientID: provider.account.clientID, redirectURI: redirectURI,
            scopes: provider.account.scopes, state: RandomToken.base64URL(bits: 256),
            nonce: RandomToken.base64URL(bits: 256), codeChallenge: PKCE().challenge)
        guard var page = request.map({ HTTPRequest(url: $0.url()) }) else { return nil }
        page.limits.timeout = ClientDiagnosis.timeout
        return try? await provider.account.send(page, toProvider: provider.http).status
    }
}

extension HTTPResponse {
    /// True if the token endpoint did not authenticate the client. `unauthorized_client` means that it did (RFC 6749
    /// section 5.2), but Keycloak and Entra also answer so if the id or the secret is wrong, and say that in their text.
    fileprivate var rejectsClient: Bool {
        if OAuthError.rejectsClient(in: self) { return true }
        guard case .refused(let errorResponse)? = failure, errorResponse.code == "unauthorized_client" else {
            return false
        }
        let text = (errorResponse.message ?? "").lowercased()
        return ["secret", "credential", "not found", "unknown client", "invalid client"].contains { text.contains($0) }
    }

    private var failure: OAuthError? {
        do throws(OAuthError) {
            _ = try TokenResponse(reading: self)
            return nil
        } catch {
            return error
        }
    }
}

/// Decides whether an account can sign in at a provider with these metadata. A sign-in, the check of an account that is
/// to be added and `ringback doctor` all use this, so that none of them accepts what another one refuses.
extension Provider {
    /// Throws `.unusableSetting`, or `.misconfigured` if no setting helps, if a sign-in could not succeed.
    func check(_ metadata: ProviderMetadata, for scopes: [String], by method: OAuthMethod) throws(BrokerError) {
        try checkIDTokens(metadata, for: scopes)
        try proofs.check(metadata, isTakenOver: method == .session)
        // The other methods send no authorization request.
        guard method == .browser else { return }
        try BrokerError.reading(
            from: metadata.issuer ?? account.name.rawValue, try metadata.checkAuthorizationRequests())
        try checkResponseMode(metadata)
        try checkPushes(metadata)
    }

    private func checkIDTokens(_ metadata: ProviderMetadata, for scopes: [String]) throws(BrokerError) {
        guard scopes.contains("openid") else { return }
        do throws(OAuthError) {
            try metadata.checkIDTokens()
        } catch {
            guard case .misconfigured(let reason) = error else {
                throw BrokerError(error, host: metadata.issuer ?? account.name.rawValue)
            }
            throw .unusableSetting(
                UnusableSetting(.stated("\(account.name) cannot sign in: \(reason)."), setting: "scopes"))
        }
    }

    /// Metadata that list no response modes offer `query` and `fragment` (RFC 8414 section 2). Configured endpoints
    /// have no list of modes: there any configured mode is accepted.
    private func checkResponseMode(_ metadata: ProviderMetadata) throws(BrokerError) {
        guard let mode = rules.responseMode, metadata.issuer != nil || metadata.responseModes != nil else { return }
        let offered = metadata.responseModes ?? ["query", "fragment"]
        guard !offered.contains(mode.rawValue) else { return }
        throw .unusableSetting(
            UnusableSetting(
                .oauth(.responseModeNotOffered(account.name, mode: mode.rawValue, offered: offered)),
                setting: "response_mode"))
    }

    /// Throws if requests must be pushed (RFC 9126), and the provider has no endpoint for that.
    func checkPushes(_ metadata: ProviderMetadata) throws(BrokerError) {
        guard metadata.pushedAuthorizationRequestEndpoint == nil, rules.pushedRequests != .never,
            requiresPushes(metadata)
        else { return }
        let reason = Reason.stated(
            "The sign-in of \(account.name) requires pushed authorization requests, but the provider's metadata have "
                + "no endpoint for them.")
        throw rules.pushedRequests == .required
            ? .unusableSetting(UnusableSetting(reason, setting: "pushed_authorization_requests"))
            : .misconfigured(reason)
    }

    func requiresPushes(_ metadata: ProviderMetadata) -> Bool {
        metadata.requiresPushedAuthorization || rules.pushedRequests == .required
    }
}

extension Finding {
    init?(_ check: Finding.Check, mistake error: BrokerError) {
        switch error {
        case .misconfigured(let reason): self.init(check, .wrong, reason, .configuration)
        case .unusableSetting(let setting):
            self.init(check, .wrong, setting.reason, .configuration, setting: setting.setting)
            terms = setting.terms
        default: return nil
        }
    }
}
