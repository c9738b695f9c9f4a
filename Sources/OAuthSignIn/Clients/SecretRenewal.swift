internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SessionVault

/// Another client secret in place of one that has expired (DCR-05), with what the registration is managed with.
extension Registrar {
    private static let renewalTimeout: Duration = .seconds(10)

    /// Reads the registration (RFC 7592 section 2.1): the provider may have a newer secret already. If it has not, the
    /// registration is updated as it is (section 2.2), whereupon providers issue one. Each is asked once.
    ///
    /// - Parameter sender: the account, as far as requests to the provider need it.
    /// - Throws: ``RegistrationRecord/expiry(of:)`` where the provider gives none.
    func renewSecret(_ slot: VaultSlot, as sender: Account) async throws(BrokerError) -> Secret {
        let entry = try await BrokerError.mapping { () throws(VaultError) in try await vault.load(slot) }
        guard var kept = entry.flatMap({ RegistrationRecord(decoding: $0.text) }), let clientID = kept.clientID else {
            throw RegistrationRecord.expiry(of: sender.name)
        }
        // Somebody else had it renewed meanwhile.
        if let secret = kept.secret, !kept.hasExpired(at: clock.now()) { return secret }
        guard let read = kept.managements.first?.reading() else { throw RegistrationRecord.expiry(of: sender.name) }
        let found = try await send(read, &kept, in: slot, as: sender)
        if let secret = try await take(found, clientID, &kept, in: slot, host: read.host) { return secret }
        guard let update = kept.managements.first.flatMap({ found.update(with: $0) }) else {
            throw RegistrationRecord.expiry(of: sender.name)
        }
        let updated = try await send(update, &kept, in: slot, as: sender)
        guard let secret = try await take(updated, clientID, &kept, in: slot, host: update.host) else {
            throw RegistrationRecord.expiry(of: sender.name)
        }
        return secret
    }

    /// Sends a request about the registration. A newer token to manage it with is kept before anything else in the
    /// answer is looked at.
    private func send(
        _ request: HTTPRequest, _ kept: inout RegistrationRecord, in slot: VaultSlot, as sender: Account
    ) async throws(BrokerError) -> RegistrationResponse {
        var request = request
        request.limits.timeout = Registrar.renewalTimeout
        try await BrokerError.mapping { () throws(VaultError) in try await vault.announce(slot) }
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await sender.send(request, toProvider: http)
        } catch {
            try? await vault.settle(slot)
            throw error
        }
        let answer: RegistrationResponse
        do throws(OAuthError) {
            answer = try RegistrationResponse(reading: response, issuer: kept.issuer)
        } catch {
            try? await vault.settle(slot)
            throw BrokerError(error, host: request.host).unquoting(kept.managements.first?.token)
        }
        guard let newer = answer.management, newer.token != kept.managements.first?.token else {
            try? await vault.settle(slot)
            return answer
        }
        let uri = newer.uri ?? kept.managements.first?.uri
        kept.managements[0] = RegistrationManagement(token: newer.token, uri: uri)
        let text = kept.encoded()
        try await BrokerError.mapping { () throws(VaultError) in try await vault.store(text, in: slot) }
        return answer
    }

    /// The secret of an answer, if it has one that is good; it is kept.
    private func take(
        _ answer: RegistrationResponse, _ clientID: String, _ kept: inout RegistrationRecord, in slot: VaultSlot,
        host: String
    ) async throws(BrokerError) -> Secret? {
        let client: RegisteredClient
        do throws(OAuthError) {
            client = try answer.client()
        } catch {
            throw BrokerError(error, host: host)
        }
        guard client.clientID == clientID else {
            throw .provider(.invalidResponse("The registration answer of \(host) is about another client."))
        }
        guard let secret = client.secret, client.secretExpiresAt.map({ $0 > clock.now() }) ?? true else { return nil }
        kept.secret = secret
        kept.secretExpiresAt = client.secretExpiresAt
        let text = kept.encoded()
        try await BrokerError.mapping { () throws(VaultError) in try await vault.store(text, in: slot) }
        return secret
    }
}

extension Account.SecretSource {
    /// The secret. One that the provider gave and that has expired is renewed, if the registration can be managed.
    func current(for name: AccountName, _ directory: ProviderDirectory) async throws(BrokerError) -> Secret {
        do throws(BrokerError) {
            return try await fetch()
        } catch {
            guard case .unusableSetting(let setting) = error, setting.hasExpired, let renew else { throw error }
            return try await directory.renewedSecret(of: name, renew)
        }
    }
}
