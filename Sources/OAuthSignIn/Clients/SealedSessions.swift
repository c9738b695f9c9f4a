public import BrokerCore
internal import OAuth
internal import SessionVault

/// Accounts for sessions in the vault whose account is gone with its settings: what is left is what the session is bound
/// to, and what the vault keeps of a registration.
private struct OAuthRestoring: AccountRestoring {
    let tools: ProviderTools

    /// Endpoints by hand are bound to an origin, and other kinds of sessions have attachments; only an issuer leads to a
    /// revocation endpoint.
    func canRestore(_ session: Session, of binding: SessionBinding) -> Bool {
        session.attachments.isEmpty && session.issuer == binding.provider
            && (try? ProviderMetadata.discoveryRequests(issuer: binding.provider)) != nil
    }

    func account(_ name: AccountName, for binding: SessionBinding) async -> Account {
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

extension Broker {
    /// The sessions in the vault that belong to no configured account, by account and time. Nil while the vault is
    /// locked.
    public func sealedSessions() async -> [SealedSession]? {
        await sealedSessions(restoring: OAuthRestoring(tools: signInContext.tools))
    }

    /// Removes these sessions of an account from the vault, and has their providers revoke them where that is possible.
    ///
    /// - Parameter revokes: false removes them without telling the provider.
    /// - Throws: ``BrokerError/nothingHeld(_:)`` if there are none.
    public func removeSealedSessions(of name: AccountName, revokes: Bool) async throws(BrokerError) -> [RemovedSession]
    {
        try await removeSealedSessions(
            of: name, revokes: revokes, restoring: OAuthRestoring(tools: signInContext.tools))
    }
}
