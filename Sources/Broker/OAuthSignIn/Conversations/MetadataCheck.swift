internal import BrokerCore
internal import OAuth

/// Decides whether an account can sign in at a provider with these metadata. A sign-in, the check of an account that is
/// to be added and `ringback doctor` all use this, so that none of them accepts what another one refuses.
extension Provider {
    /// Throws if the provider would not accept the request of a sign-in, or if its response could not be validated:
    /// `.unusableSetting`, or `.misconfigured` if no setting helps.
    func check(
        _ metadata: ProviderMetadata, for scopes: [String], by method: OAuthMethod
    ) throws(BrokerError) {
        try checkIDTokens(metadata, for: scopes)
        // The other methods send no authorization request.
        guard method == .browser else { return }
        do throws(OAuthError) {
            try metadata.checkAuthorizationRequests()
        } catch {
            throw BrokerError(error, host: metadata.issuer ?? account.name.rawValue)
        }
        try checkResponseMode(metadata)
        try checkPushes(metadata)
    }

    /// Throws if the ID token that the scopes request could not be validated.
    private func checkIDTokens(_ metadata: ProviderMetadata, for scopes: [String]) throws(BrokerError) {
        guard scopes.contains("openid") else { return }
        do throws(OAuthError) {
            try metadata.checkIDTokens()
        } catch {
            guard case .misconfigured(let reason) = error else {
                throw BrokerError(error, host: metadata.issuer ?? account.name.rawValue)
            }
            throw .unusableSetting(
                UnusableSetting(.oauth(.idTokenNotCheckable(account.name, cause: reason)), setting: "scopes"))
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
        let reason = Reason.oauth(.noPushEndpoint(account.name))
        throw rules.pushedRequests == .required
            ? .unusableSetting(UnusableSetting(reason, setting: "pushed_authorization_requests"))
            : .misconfigured(reason)
    }

    func requiresPushes(_ metadata: ProviderMetadata) -> Bool {
        metadata.requiresPushedAuthorization || rules.pushedRequests == .required
    }
}

extension Finding {
    /// The finding for a mistake in an account's configuration; nil for other errors.
    init?(_ check: Finding.Check, mistake error: BrokerError) {
        switch error {
        case .misconfigured(let reason): self.init(check, .wrong, reason, .configuration)
        case .unusableSetting(let setting):
            self.init(check, .wrong, setting.reason, .configuration, setting: setting.setting)
        default: return nil
        }
    }
}
