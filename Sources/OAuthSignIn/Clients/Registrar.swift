internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SessionVault

/// Has a client registered at a provider. What a registration is managed with exists nowhere but in the provider's
/// answer: room for it is made before anything is asked for, it is sealed before the answer is believed, and a
/// registration that cannot be used is deleted again.
struct Registrar: Sendable {
    let vault: any Vault
    let http: any HTTPClient
    let directory: ProviderDirectory
    let clock: BrokerClock
    let record: @Sendable (BrokerFact) -> Void

    private static let deletionTimeout: Duration = .seconds(10)

    /// The walk of a registration.
    func register(_ order: RegistrationOrder) async throws(BrokerError) -> RegistrationView {
        let metadata = try await directory.metadata(of: order.sender, issuer: order.issuer)
        guard let endpoint = metadata.registrationEndpoint else {
            throw .misconfigured(
                "\(order.issuer) names no registration_endpoint: it registers no clients by itself. Register the client "
                    + "at the provider by hand, and add the account with --client-id.")
        }
        let requests = try order.requests(metadata)
        // The client's name is not known yet: what cannot be used stays under none.
        let waiting = RegistrationRecord.slot(order.account, issuer: order.issuer, clientID: nil)
        try await keep { () throws(VaultError) in try await vault.announce(waiting) }
        do throws(BrokerError) {
            let view = try await register(order, requests, endpoint, waiting)
            _ = try? await vault.settle(waiting)
            record(.clientRegistered(order.account, issuer: order.issuer, clientID: view.clientID))
            return view
        } catch {
            // A text that was stored is not undone by this.
            _ = try? await vault.settle(waiting)
            throw error
        }
    }

    /// The first of the requests that the provider does not call wrong: nothing comes of one that it does.
    private func register(
        _ order: RegistrationOrder, _ requests: [ClientRegistrationRequest], _ endpoint: String, _ waiting: VaultSlot
    ) async throws(BrokerError) -> RegistrationView {
        var refusal = BrokerError.cancelled
        for request in requests {
            do throws(BrokerError) {
                return try await register(order, request, endpoint, waiting)
            } catch {
                guard case .provider(.refused("invalid_client_metadata", _)) = error else { throw error }
                refusal = error
            }
        }
        throw refusal
    }

    private func register(
        _ order: RegistrationOrder, _ request: ClientRegistrationRequest, _ endpoint: String, _ waiting: VaultSlot
    ) async throws(BrokerError) -> RegistrationView {
        let message = request.request(to: endpoint, initialAccessToken: order.initialAccessToken)
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await order.sender.send(message, toProvider: http)
        } catch {
            // It may have been heard all the same: then there is a client that nobody knows here.
            record(.registrationLeft(order.account, error))
            throw error
        }
        let answer: RegistrationResponse
        do throws(OAuthError) {
            answer = try RegistrationResponse(reading: response, issuer: order.issuer)
        } catch {
            throw meaning(of: error, response, message.host).unquoting(order.initialAccessToken)
        }
        let client: RegisteredClient
        do throws(OAuthError) {
            client = try answer.client(asked: request)
        } catch {
            throw await undo(answer, order, waiting, because: meaning(of: error, response, message.host))
        }
        let slot = RegistrationRecord.slot(order.account, issuer: order.issuer, clientID: client.clientID)
        // A provider may give one client_id twice: what deletes the earlier registration exists nowhere else.
        let earlier = (try? await vault.load(slot)).flatMap { $0 }.flatMap { RegistrationRecord(decoding: $0.text) }
        let older = (earlier?.managements ?? []).filter { $0.uri == nil || $0.uri != answer.management?.uri }
        let kept = RegistrationRecord(
            issuer: order.issuer, clientID: client.clientID, secret: client.secret,
            secretExpiresAt: client.secretExpiresAt, managements: [answer.management].compactMap { $0 } + older,
            registeredAt: clock.now())
        do throws(BrokerError) {
            try await keep { () throws(VaultError) in try await vault.store(kept.encoded(), in: slot) }
        } catch {
            throw await undo(answer, order, waiting, because: error)
        }
        return RegistrationView(order, request, client, isManaged: answer.management?.uri != nil)
    }

    /// Of an answer that was cut off, why it was says more than what is missing in it.
    private func meaning(of error: OAuthError, _ response: HTTPResponse, _ host: String) -> BrokerError {
        response.truncation.map { BrokerError($0) } ?? BrokerError(error, host: host)
    }

    // MARK: Undoing

    /// A registration that is there and cannot be used: it goes, or what it is managed with stays, and either is said.
    private func undo(
        _ answer: RegistrationResponse, _ order: RegistrationOrder, _ waiting: VaultSlot, because reason: BrokerError
    ) async -> BrokerError {
        let name = answer.clientID.map { "the client \($0)" } ?? "a client"
        guard let management = answer.management else {
            return reason.adding("The provider may have registered \(name), and gave nothing to delete it with.")
        }
        let earlier = (try? await vault.load(waiting)).flatMap { $0 }.flatMap { RegistrationRecord(decoding: $0.text) }
        var kept = RegistrationRecord(
            issuer: order.issuer, clientID: nil, managements: [management] + (earlier?.managements ?? []),
            registeredAt: clock.now())
        // First: the provider may take long to say no.
        let isKept = (try? await vault.store(kept.encoded(), in: waiting)) != nil
        guard management.uri != nil else {
            record(.registrationLeft(order.account, reason))
            return reason.adding(
                "The provider has registered \(name), and where it can be deleted did not arrive. "
                    + (isKept ? "The token for it is kept in the vault." : ""))
        }
        do throws(BrokerError) {
            _ = try await delete(management, as: order.sender)
        } catch {
            record(.registrationLeft(order.account, error))
            let rest = isKept ? "What deletes it is kept in the vault; see the manual, ringback(1)." : ""
            return reason.adding("The provider has registered \(name), which could not be deleted again. \(rest)")
        }
        kept.managements.removeFirst()
        try? await replace(kept, in: waiting)
        record(.registrationDeleted(order.account, clientID: answer.clientID))
        return reason.adding("The registration was deleted again.")
    }

    /// Deletes a registration at the provider (RFC 7592 section 2.3). False if nobody knows where.
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

    /// Deletes a kept registration that no account uses, at the provider and then here. Says whether the provider was
    /// told; throws, and keeps it, if the provider could not be told or said no.
    func delete(_ slot: VaultSlot, as sender: Account) async throws(BrokerError) -> Bool {
        let entry = try await keep { () throws(VaultError) in try await vault.load(slot) }
        guard let entry else {
            throw .nothingHeld("The vault holds no registration of \(sender.name) for this issuer and client_id.")
        }
        guard var kept = RegistrationRecord(decoding: entry.text) else {
            throw .vaultFailed("What the vault holds of this registration cannot be read by this version.")
        }
        var isTold = !kept.managements.isEmpty
        while let management = kept.managements.first {
            if try await !delete(management, as: sender) { isTold = false }
            kept.managements.removeFirst()
            try await keep { () throws(VaultError) in try await replace(kept, in: slot) }
        }
        try await keep { () throws(VaultError) in try await vault.remove(slot) }
        record(.registrationDeleted(sender.name, clientID: kept.clientID))
        return isTold
    }

    /// What is left to delete, or nothing.
    private func replace(_ kept: RegistrationRecord, in slot: VaultSlot) async throws(VaultError) {
        guard !kept.managements.isEmpty else { return try await vault.remove(slot) }
        try await vault.store(kept.encoded(), in: slot)
    }

    func keep<Value>(_ body: () async throws(VaultError) -> Value) async throws(BrokerError) -> Value {
        do throws(VaultError) {
            return try await body()
        } catch {
            throw BrokerError(error)
        }
    }
}

extension BrokerError {
    /// The same with another sentence, where there is a place for one.
    func adding(_ sentence: String) -> BrokerError {
        switch self {
        case .provider(.invalidResponse(let reason)): .provider(.invalidResponse("\(reason) \(sentence)"))
        case .provider(.unreachable(let host, let reason)):
            .provider(.unreachable(host: host, reason: "\(reason). \(sentence)"))
        case .provider(.untrusted(let host, let reason)):
            .provider(.untrusted(host: host, reason: "\(reason). \(sentence)"))
        case .vaultFailed(let reason): .vaultFailed("\(reason) \(sentence)")
        case .vaultLocked(let reason, let obstacle): .vaultLocked("\(reason) \(sentence)", obstacle: obstacle)
        case .conflict(let reason, let cause): .conflict("\(reason) \(sentence)", cause: cause)
        case .misconfigured(let reason): .misconfigured("\(reason) \(sentence)")
        default: self
        }
    }
}
