internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SessionVault

/// Replaces an expired client secret with the registration's management token.
extension Registrar {
    private static let renewalTimeout: Duration = .seconds(10)
    /// How often another host may change the registration meanwhile.
    private static let mostChanges = 5

    /// Reads the registration (RFC 7592 section 2.1): the provider may have a newer secret already. If not, an update
    /// without changes is sent once (section 2.2), after which some providers issue one. Throws
    /// ``RegistrationRecord/expiry(of:)`` if there is none.
    func renewSecret(_ slot: VaultSlot, as sender: Account) async throws(BrokerError) -> Secret {
        for _ in 0..<Registrar.mostChanges {
            if let secret = try await renewedSecret(slot, as: sender) { return secret }
        }
        throw BrokerError(.unreachable(.changedElsewhere))
    }

    /// Nil if another host has changed the registration: it is read again then.
    private func renewedSecret(_ slot: VaultSlot, as sender: Account) async throws(BrokerError) -> Secret? {
        let entry = try await BrokerError.mapping { () throws(VaultError) in try await vault.load(slot) }
        guard var kept = entry.flatMap({ RegistrationRecord(decoding: $0.text) }), let clientID = kept.clientID else {
            throw RegistrationRecord.expiry(of: sender)
        }
        // Another caller has renewed it meanwhile.
        if let secret = kept.secret, !kept.hasExpired(at: clock.wallInstant) { return secret }
        guard let read = kept.managements.first?.reading() else { throw RegistrationRecord.expiry(of: sender) }
        guard let found = try await send(read, &kept, in: slot, as: sender) else { return nil }
        if let secret = try await take(found, clientID, &kept, in: slot, host: read.host) { return secret }
        guard let update = kept.managements.first.flatMap({ found.update(with: $0) }) else {
            throw RegistrationRecord.expiry(of: sender)
        }
        guard let updated = try await send(update, &kept, in: slot, as: sender) else { return nil }
        guard let secret = try await take(updated, clientID, &kept, in: slot, host: update.host) else {
            throw RegistrationRecord.expiry(of: sender)
        }
        return secret
    }

    /// Sends a request about the registration. A new management token is stored before the rest of the response is
    /// read. Nil, and nothing is sent, if another host has changed the registration.
    private func send(
        _ request: HTTPRequest, _ kept: inout RegistrationRecord, in slot: VaultSlot, as sender: Account
    ) async throws(BrokerError) -> RegistrationResponse? {
        var request = request
        request.limits.timeout = Registrar.renewalTimeout
        if try await records.announce(slot) {
            try? await vault.settle(slot)
            return nil
        }
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await sender.send(request, toProvider: http)
        } catch {
            try? await vault.settle(slot)
            throw error
        }
        let registered: RegistrationResponse
        do throws(OAuthError) {
            registered = try RegistrationResponse(reading: response, issuer: kept.issuer)
        } catch {
            try? await vault.settle(slot)
            throw BrokerError(error, host: request.host).unquoting(kept.managements.first?.token)
        }
        guard let newer = registered.management, newer.token != kept.managements.first?.token else {
            try? await vault.settle(slot)
            return registered
        }
        let uri = newer.uri ?? kept.managements.first?.uri
        kept.managements[0] = RegistrationManagement(token: newer.token, uri: uri)
        let text = kept.encoded()
        try await BrokerError.mapping { () throws(VaultError) in try await vault.store(text, in: slot) }
        return registered
    }

    private func take(
        _ registered: RegistrationResponse, _ clientID: String, _ kept: inout RegistrationRecord, in slot: VaultSlot,
        host: String
    ) async throws(BrokerError) -> Secret? {
        let client = try BrokerError.reading(from: host, try registered.client())
        guard client.clientID == clientID else {
            throw .provider(.invalidResponse(.stated("The registration response of \(host) is about another client.")))
        }
        guard let secret = client.secret, client.secretExpiresAt.map({ $0 > clock.now() }) ?? true else { return nil }
        kept.secret = secret
        kept.secretExpiresAt = client.secretExpiresAt.map { WallInstant(seconds: $0) }
        let text = kept.encoded()
        try await BrokerError.mapping { () throws(VaultError) in try await vault.store(text, in: slot) }
        return secret
    }
}

extension Account.SecretSource {
    /// The secret. An expired one is renewed if the vault has the registration's management token.
    func current(for name: AccountName, _ directory: ProviderDirectory) async throws(BrokerError) -> Secret {
        do throws(BrokerError) {
            return try await fetch()
        } catch {
            guard case .unusableSetting(let setting) = error, setting.hasExpired, let renew else { throw error }
            return try await directory.renewedSecret(of: name, renew)
        }
    }
}
