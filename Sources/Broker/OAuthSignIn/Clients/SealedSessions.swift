public import BrokerCore
internal import OAuth
internal import SessionVault

/// Makes accounts for sessions in the vault whose account is not configured any more, from the session's binding and
/// the vault's record of a registration.
private struct OAuthRestoring: AccountRestoring {
    let tools: ProviderTools

    /// True for a session at an issuer, whose metadata name the revocation endpoint, and for a session at an MCP
    /// server, whose attachment names the issuer. A session with configured endpoints is bound to an origin, and other
    /// kinds of sessions have other attachments: for these it is false.
    func canRestore(_ session: Session, of binding: SessionBinding) -> Bool {
        if let kind = MCPAccount(binding) { return MCPConnection(of: session, at: kind.server) != nil }
        return session.attachments.isEmpty && session.issuer == binding.provider
            && (try? ProviderMetadata.discoveryRequests(issuer: binding.provider)) != nil
    }

    func account(_ name: AccountName, for binding: SessionBinding) async -> Account {
        if let kind = MCPAccount(binding) {
            return Account(name: name, provider: "mcp", source: "vault", kind: kind, clientID: binding.clientID)
        }
        var account = Account(
            name: name, provider: "oidc", source: "vault", kind: OAuthAccount(endpoints: .issuer(binding.provider)),
            clientID: binding.clientID)
        let slot = RegistrationRecord.slot(name, issuer: binding.provider, clientID: binding.clientID)
        if let text = try? await tools.vault.load(slot)?.text, RegistrationRecord(decoding: text)?.secret != nil {
            account.oauth.clientSecret = .registered(for: account, in: tools.vault, clock: tools.clock)
        }
        return account
    }
}

extension SealedSessions {
    /// The sessions in the vault of a broker. They are revoked at the issuer to which each session is bound.
    public init(of broker: Broker) {
        self.init(of: broker, restoring: OAuthRestoring(tools: broker.signInContext.tools))
    }
}
