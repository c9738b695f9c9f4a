internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SessionVault

/// Registers a client at a provider. The token that manages a registration exists only in the provider's response. So
/// space in the vault is reserved before the request, the token is stored before the rest of the response is checked,
/// and a registration that cannot be used is deleted.
struct Registrar: Sendable {
    let vault: any Vault
    let http: any HTTPClient
    let directory: ProviderDirectory
    let clock: BrokerClock
    let record: @Sendable (BrokerFact) -> Void

    private static let deletionTimeout: Duration = .seconds(10)

    var records: SharedRecords { SharedRecords(vault: vault, clock: clock) }

    func register(_ order: RegistrationOrder) async throws(BrokerError) -> RegistrationView {
        let metadata = try await directory.metadata(of: order.sender, issuer: order.issuer)
        guard let endpoint = metadata.registrationEndpoint else {
            throw .unusableSetting(
                UnusableSetting(.oauth(.noRegistrationEndpoint(issuer: order.issuer)), setting: "client_id"))
        }
        let requests = try order.requests(metadata)
        // The client_id is not known yet. Unusable registrations are stored in the slot without a client_id.
        let waiting = RegistrationRecord.slot(order.account, issuer: order.issuer, clientID: nil)
        _ = try await records.announce(waiting)
        do throws(BrokerError) {
            let view = try await register(order, requests, endpoint, waiting)
            _ = try? await vault.settle(waiting)
            record(.clientRegistered(order.account, issuer: order.issuer, clientID: view.clientID))
            return view
        } catch {
            // This releases the reserved space only; a record that was stored stays.
            _ = try? await vault.settle(waiting)
            throw error
        }
    }

    /// Sends the requests in order until one is not rejected with `invalid_client_metadata`, which registers no client.
    private func register(
        _ order: RegistrationOrder, _ requests: [ClientRegistrationRequest], _ endpoint: String, _ waiting: VaultSlot
    ) async throws(BrokerError) -> RegistrationView {
        var failure = BrokerError.cancelled
        for request in requests {
            do throws(BrokerError) {
                return try await register(order, request, endpoint, waiting)
            } catch {
                guard case .provider(.refused("invalid_client_metadata", _)) = error else { throw error }
                failure = error
            }
        }
        throw failure
    }

    private func register(
        _ order: RegistrationOrder, _ request: ClientRegistrationRequest, _ endpoint: String, _ waiting: VaultSlot
    ) async throws(BrokerError) -> RegistrationView {
        let message = request.request(to: endpoint, initialAccessToken: order.initialAccessToken)
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await order.sender.send(message, toProvider: http)
        } catch {
            // The provider may have registered a client, whose client_id is not known here.
            record(.registrationLeft(order.account, error))
            throw error
        }
        let registered: RegistrationResponse
        do throws(OAuthError) {
            registered = try RegistrationResponse(reading: response, issuer: order.issuer)
        } catch {
            throw meaning(of: error, response, message.host).unquoting(order.initialAccessToken)
        }
        let client: RegisteredClient
        do throws(OAuthError) {
            client = try registered.client(asked: request)
        } catch {
            throw await undo(registered, order, waiting, because: meaning(of: error, response, message.host))
        }
        let slot = RegistrationRecord.slot(order.account, issuer: order.issuer, clientID: client.clientID)
        // A provider may issue the same client_id twice: only the tokens of the earlier registration can delete it.
        let earlier = (try? await vault.load(slot)).flatMap { $0 }.flatMap { RegistrationRecord(decoding: $0.text) }
        let older = (earlier?.managements ?? []).filter { $0.uri == nil || $0.uri != registered.management?.uri }
        let kept = RegistrationRecord(
            issuer: order.issuer, clientID: client.clientID, secret: client.secret,
            secretExpiresAt: client.secretExpiresAt.map { WallInstant(seconds: $0) },
            managements: [registered.management].compactMap { $0 } + older,
            registeredAt: clock.wallInstant)
        do throws(VaultError) {
            try await vault.store(kept.encoded(), in: slot)
        } catch {
            throw await undo(registered, order, waiting, because: BrokerError(error))
        }
        return RegistrationView(order, request, client, isManaged: registered.management?.uri != nil)
    }

    private func meaning(of error: OAuthError, _ response: HTTPResponse, _ host: String) -> BrokerError {
        response.truncation.map { BrokerError($0) } ?? BrokerError(error, host: host)
    }

    // MARK: Undoing

    /// Deletes a registration that cannot be used. If that fails, its token stays in the vault. The error says which.
    private func undo(
        _ registered: RegistrationResponse, _ order: RegistrationOrder, _ waiting: VaultSlot,
        because reason: BrokerError
    ) async -> BrokerError {
        let client = registered.clientID
        guard let management = registered.management else {
            return reason.adding(.maybeRegistered(client: client))
        }
        let earlier = (try? await vault.load(waiting)).flatMap { $0 }.flatMap { RegistrationRecord(decoding: $0.text) }
        var kept = RegistrationRecord(
            issuer: order.issuer, clientID: nil, managements: [management] + (earlier?.managements ?? []),
            registeredAt: clock.wallInstant)
        // Store before deleting: the provider may be slow to respond.
        let isKept = (try? await vault.store(kept.encoded(), in: waiting)) != nil
        guard management.uri != nil else {
            record(.registrationLeft(order.account, reason))
            return reason.adding(.noDeletionURL(client: client, isTokenKept: isKept))
        }
        do throws(BrokerError) {
            _ = try await delete(management, as: order.sender)
        } catch {
            record(.registrationLeft(order.account, error))
            return reason.adding(.notDeleted(client: client, isTokenKept: isKept))
        }
        kept.managements.removeFirst()
        try? await replace(kept, in: waiting)
        record(.registrationDeleted(order.account, clientID: registered.clientID))
        return reason.adding(.deleted)
    }

    /// Deletes a registration at the provider (RFC 7592 section 2.3). False if its URL is not known.
    func delete(_ management: RegistrationManagement, as sender: Account) async throws(BrokerError) -> Bool {
        guard var request = management.deletion() else { return false }
        request.limits.timeout = Registrar.deletionTimeout
        let response = try await sender.send(request, toProvider: http)
        do throws(OAuthError) {
            try RegistrationManagement.checkDeletion(response)
        } catch {
            throw BrokerError(error, host: request.host).unquoting(management.token)
        }
        return true
    }

    /// Deletes a stored registration that no account uses, at the provider and then in the vault. True if the provider
    /// deleted it. Throws, and keeps the record, if the provider could not be reached or rejected the request.
    func delete(_ slot: VaultSlot, as sender: Account) async throws(BrokerError) -> Bool {
        let entry = try await BrokerError.mapping { () throws(VaultError) in try await vault.load(slot) }
        guard let entry else { throw .nothingHeld(.oauth(.noRegistration(sender.name))) }
        guard var kept = RegistrationRecord(decoding: entry.text) else {
            throw .vaultFailed(.stated("This version cannot read the vault's record of this registration."))
        }
        var isTold = !kept.managements.isEmpty
        while let management = kept.managements.first {
            if try await !delete(management, as: sender) { isTold = false }
            kept.managements.removeFirst()
            try await BrokerError.mapping { () throws(VaultError) in try await replace(kept, in: slot) }
        }
        try await BrokerError.mapping { () throws(VaultError) in try await vault.remove(slot) }
        record(.registrationDeleted(sender.name, clientID: kept.clientID))
        return isTold
    }

    /// Stores the record, or removes it if no registration is left to delete.
    private func replace(_ kept: RegistrationRecord, in slot: VaultSlot) async throws(VaultError) {
        guard !kept.managements.isEmpty else { return try await vault.remove(slot) }
        try await vault.store(kept.encoded(), in: slot)
    }
}

extension Registrar {
    init(_ tools: ProviderTools) {
        self.init(
            vault: tools.vault, http: tools.http, directory: tools.memory(), clock: tools.clock, record: tools.record)
    }
}

extension BrokerError {
    fileprivate func adding(_ leftover: OAuthReason.Leftover) -> BrokerError { adding(.oauth(.leftover(leftover))) }

    func adding(_ more: Reason) -> BrokerError {
        switch self {
        case .provider(.invalidResponse(let reason)): .provider(.invalidResponse(.both(reason, more)))
        case .provider(.unreachable(let host, let reason, let proxy)):
            .provider(.unreachable(host: host, reason: .both(reason, more), proxy: proxy))
        case .provider(.untrusted(let host, let reason)):
            .provider(.untrusted(host: host, reason: .both(reason, more)))
        case .vaultFailed(let reason): .vaultFailed(.both(reason, more))
        case .vaultUnreachable(let reason, let seconds): .vaultUnreachable(.both(reason, more), retryAfter: seconds)
        case .vaultLocked(let reason, let obstacle): .vaultLocked(.both(reason, more), obstacle: obstacle)
        case .conflict(let reason, let cause): .conflict(.both(reason, more), cause: cause)
        case .misconfigured(let reason): .misconfigured(.both(reason, more))
        default: self
        }
    }
}

/// Records of registrations in a vault that several hosts may share: another host that is at one is waited for, and what
/// it has changed is read again. A vault of one host lets everything happen at once.
struct SharedRecords: Sendable {
    /// How often another host is waited for, a second each time, and how often it may change the record meanwhile.
    private static let mostTurns = 30

    let vault: any Vault
    let clock: BrokerClock

    /// Announces a request whose response may change the record: reserves room, and takes the record's turn among the
    /// hosts, until `store` or `settle`. Returns true if another host has changed the record since it was read.
    func announce(_ slot: VaultSlot) async throws(BrokerError) -> Bool {
        var isChanged = false
        for _ in 0..<SharedRecords.mostTurns {
            let announcement = try await BrokerError.mapping { () throws(VaultError) in
                try await vault.announce(slot, presenting: nil, accessTokenLeft: nil)
            }
            switch announcement {
            case .granted: return isChanged
            case .changed: isChanged = true
            case .wait(let wait): try await pause(wait)
            }
        }
        throw BrokerError(.unreachable(.heldElsewhere))
    }

    /// Changes the record without a request, whatever other hosts do meanwhile. `change` may be called several times.
    func change(_ slot: VaultSlot, _ change: @Sendable (Secret?) -> Secret) async throws(BrokerError) {
        for turn in 1...SharedRecords.mostTurns {
            do throws(VaultError) {
                return try await vault.store(change(try await vault.load(slot)?.text), in: slot)
            } catch {
                let isHeld = error == .unreachable(.heldElsewhere)
                guard isHeld || error == .unreachable(.changedElsewhere), turn < SharedRecords.mostTurns else {
                    throw BrokerError(error)
                }
                if isHeld { try await pause(.seconds(1)) }
            }
        }
    }

    private func pause(_ wait: Duration) async throws(BrokerError) {
        do { try await clock.sleep(min(wait, .seconds(1))) } catch { throw .cancelled }
    }
}
