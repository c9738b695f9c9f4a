internal import RingbackBase
public import SessionVault

/// A session in the vault that belongs to no configured account: its account was removed, or has another provider or
/// client now.
public struct SealedSession: Sendable, Equatable {
    public let account: String
    /// As in ``SessionBinding``.
    public let provider: String
    public let clientID: String
    public let subject: String?
    /// The user's address or the subject, for messages; nil for a user without either.
    public let displayName: String?
    public let signedInAt: WallInstant
    /// It was signed out here, and its provider has not been told yet.
    public let isSignedOut: Bool
    /// False if the revocation request needs settings that were removed together with the account: endpoints that were
    /// given by hand, or a project's `api_key`.
    public let isRevocable: Bool
}

/// What became of a session that was removed from the vault.
public struct RemovedSession: Sendable {
    public enum Revocation: String, Sendable, CaseIterable {
        case revoked
        /// The caller did not want the provider to be told.
        case notAsked = "not_asked"
        /// The provider offers no revocation.
        case notOffered = "not_offered"
        /// The provider was asked and did not revoke it, for example because the client secret is missing.
        case refused
        /// The provider was not asked, since the session is not ``SealedSession/isRevocable``.
        case settingsGone = "settings_gone"
        /// The provider cannot be reached. The session is kept for another attempt; no caller gets it.
        case waiting
    }

    public let session: SealedSession
    public let revocation: Revocation
    /// Why the provider could not be told, where a request was made.
    public let error: BrokerError?
}

/// Makes an account for a session that is left in the vault, to have its provider revoke it.
public protocol AccountRestoring: Sendable {
    /// True if the session's binding is enough for ``account(_:for:)``.
    func canRestore(_ session: Session, of binding: SessionBinding) -> Bool

    /// An account that can revoke a session of the binding. It is not configured, and has no sign-ins.
    func account(_ name: AccountName, for binding: SessionBinding) async -> Account
}

/// The sessions in the vault that belong to no configured account: no lane holds them.
public struct SealedSessions: Sendable {
    private let broker: Broker
    private let restoring: any AccountRestoring

    public init(of broker: Broker, restoring: any AccountRestoring) {
        self.broker = broker
        self.restoring = restoring
    }

    /// The sessions, by account and time. Nil while the vault is locked, and if it takes longer than the bound to read them:
    /// the database that hosts share may not answer.
    public func list(atMost bound: Duration) async -> [SealedSession]? {
        let reading = broker.work.attempt { () throws(BrokerError) in try await entries().map(\.shown) }
        return try? await reading.get(atMost: bound)
    }

    /// The accounts of those that are in a slot which fulfils the condition, sorted; none while the vault is locked.
    public func accounts(where isWanted: EverySession.Condition) async -> [String] {
        var names: Set<String> = []
        for entry in (try? await entries()) ?? [] where entry.retirement == nil {
            if await isWanted(entry.slot) { names.insert(entry.shown.account) }
        }
        return names.sorted()
    }

    /// Removes the sessions of an account from the vault, and has their providers revoke them where that is possible.
    ///
    /// - Parameter revokes: false removes them without telling the provider.
    /// - Throws: ``BrokerError/nothingHeld(_:)`` if there are none.
    public func remove(of name: AccountName, revokes: Bool) async throws(BrokerError) -> [RemovedSession] {
        try await broker.vaultSettled(atMost: .seconds(30))
        // The removal goes on if the caller disconnects.
        return try await broker.work.attempt { () throws(BrokerError) in
            let found = try await entries().filter { $0.shown.account == name.rawValue }
            guard !found.isEmpty else {
                throw .nothingHeld(.stated("The vault has no session of \(name) without a configured account."))
            }
            var removed: [RemovedSession] = []
            for entry in found { removed.append(try await remove(entry, of: name, revokes: revokes)) }
            for slot in Set(found.map(\.slot.ofUsers)) {
                try await BrokerError.mapping { () throws(VaultError) in try await broker.vault.remove(slot) }
            }
            return removed
        }.get()
    }

    private struct Entry: Sendable {
        let slot: VaultSlot
        /// Its name in the vault if it was signed out.
        let retirement: String?
        let session: Session
        /// The user signed out everywhere.
        let endsAll: Bool
        let binding: SessionBinding
        let isRevocable: Bool

        init?(_ slot: VaultSlot, retirement: String?, _ text: Secret, _ work: SealedSessions) {
            guard let session = try? SessionRecord.decode(text, by: work.broker.clock),
                let binding = SessionBinding(parsing: slot.binding)
            else { return nil }
            self.slot = slot
            self.retirement = retirement
            self.session = session
            endsAll = SessionRecord.endsAll(text)
            self.binding = binding
            isRevocable = work.restoring.canRestore(session, of: binding)
        }

        var shown: SealedSession {
            SealedSession(
                account: slot.account, provider: binding.provider, clientID: binding.clientID,
                subject: session.subject, displayName: session.displayName, signedInAt: session.signedInAt,
                isSignedOut: retirement != nil, isRevocable: isRevocable)
        }
    }

    private func entries() async throws(BrokerError) -> [Entry] {
        if let error = await broker.sessionManager.lockError { throw error }
        let known = Set(await broker.sessionManager.lanes.values.map(\.account.slot))
        var found: [Entry] = []
        try await BrokerError.mapping { () throws(VaultError) in
            let slots = try await broker.vault.slots(of: .session, besides: known)
            for (slot, entry) in zip(slots, await broker.vault.load(slots)) {
                guard let text = try entry.get()?.text else { continue }
                found += [Entry(slot, retirement: nil, text, self)].compactMap { $0 }
            }
            // Signed-out sessions of configured accounts are skipped: their providers are told without a request here.
            for entry in try await broker.vault.retired() where !known.contains(entry.slot) {
                found += [Entry(entry.slot, retirement: entry.id, entry.text, self)].compactMap { $0 }
            }
        }
        return found.sorted { ($0.slot.account, $0.session.signedInAt) < ($1.slot.account, $1.session.signedInAt) }
    }

    /// The session leaves its slot at once; the vault keeps it until the provider has been told.
    private func remove(
        _ entry: Entry, of name: AccountName, revokes: Bool
    ) async throws(BrokerError) -> RemovedSession {
        var retirement = entry.retirement
        if retirement == nil {
            // In the account's turn: a refresh that was running when the account was removed may still store its
            // response.
            retirement = try await broker.sessionManager.inTurn(name) { manager throws(BrokerError) in
                guard manager.lanes[name]?.account.slot != entry.slot else {
                    throw .conflict(.stated("\(name) is configured again; its session was not removed."))
                }
                do throws(VaultError) {
                    return try await manager.vault.retire(entry.slot)?.id
                } catch {
                    throw BrokerError(error)
                }
            }
            broker.record(.sessionClosed(name, subject: entry.session.subject))
        }
        let (revocation, error) = revokes ? await revoke(entry, of: name) : (.notAsked, nil)
        if let retirement, revocation != .waiting {
            await broker.revocations.drop(retirement)
            try await BrokerError.mapping { () throws(VaultError) in try await broker.vault.discard(retirement) }
        }
        switch revocation {
        case .revoked: broker.record(.revocationDelivered(name))
        case .notOffered: broker.record(.revocationNotOffered(name))
        default: broker.record(.revocationAbandoned(name))
        }
        return RemovedSession(session: entry.shown, revocation: revocation, error: error)
    }

    private func revoke(
        _ entry: Entry, of name: AccountName
    ) async -> (RemovedSession.Revocation, BrokerError?) {
        guard entry.isRevocable else { return (.settingsGone, nil) }
        let account = await restoring.account(name, for: entry.binding)
        do throws(BrokerError) {
            let isTold = try await account.provider(with: broker.tools).revoke(entry.session, endingAll: entry.endsAll)
            return (isTold ? .revoked : .notOffered, nil)
        } catch {
            switch error {
            case .provider(.unreachable), .provider(.unavailable), .provider(.failing), .provider(.rateLimited),
                .provider(.untrusted), .provider(.wrongScheme), .cancelled, .timedOut:
                return (.waiting, error)
            default: return (.refused, error)
            }
        }
    }
}
