public import SessionVault

/// Sessions that the daemon does not hold: they are ended at their provider, unless that would end another session.
extension Broker {
    /// Ends the session of a refused or cancelled sign-in. Some providers have one grant for all sessions of a user and
    /// revoke it with any token: nothing is revoked while another session of the user is held, unless the provider
    /// distinguishes them.
    func endRefused(_ session: Session, of account: Account) async {
        if account.provider(with: tools).family(of: session) == nil,
            await sessionManager.holdsSession(ofUserOf: session, boundAs: account)
        {
            return
        }
        endUnheld(session, of: account)
    }

    func endUnheld(_ session: Session, of account: Account) {
        work.start { await revocations.deliver(Closed(account: account, session: session)) }
    }

    /// Opens a session. The one that it replaces is ended at the provider if that distinguishes them, perhaps later.
    func open(_ session: Session, for account: Account, _ opening: SessionOpening) async throws(BrokerError) {
        defer { endReplaced() }
        try await sessionManager.open(session, for: account, opening)
        // A change of the user who is signed in ends no sign-in.
        if opening.event != .userUpdated { await flowRegistry.noteSignIn(of: account.name) }
    }

    func endReplaced() { work.start { await revocations.deliverReplaced() } }
}

extension SessionManager {
    /// The provider has proven the end of the session: a record of that takes its place. `code` is the provider's own,
    /// where it has more than one.
    func end(
        _ lane: Lane, _ code: String?, message: String? = nil, unheard: EndProof.UnheardRequest? = nil
    ) async -> BrokerError {
        let hasMoved = lane.state.session?.hasMoved == true
        // If nothing of the session may be written, its end is not recorded either.
        if lane.state.session?.isEphemeral != true {
            await store.recordEnd(code, message, hasMoved: hasMoved, in: lane.account.slot)
        }
        detached.settle(lane.account.slot)
        take(.dead(code: code, message: message, unheard: unheard), lane.id)
        return .sessionExpired(lane.account.name, word: code, message: message, hasMoved: hasMoved)
    }

    func takeOrphans() -> [Closed] { detached.takeEnded() }

    func takeReplaced() -> [Closed] { detached.takeReplaced() }

    /// Drops the sessions that are not stored, since the daemon ends. They are returned to be ended at their providers.
    func endEphemeral() -> [Closed] {
        for lane in lanes.values {
            // The apps of a configured session may still be using its tokens.
            guard let session = lane.state.session, session.isEphemeral, !session.isConfigured else { continue }
            detached.end(session, of: lane.account)
            take(.dropped, lane.id)
        }
        detached.endMemoryOnly()
        return takeOrphans()
    }

    func holdsSession(ofUserOf session: Session, boundAs account: Account) -> Bool {
        lanes.values.contains { lane in
            lane.account.binding == account.binding && lane.state.session?.isSameUser(as: session) == true
        }
    }
}

public struct SignedOut: Sendable {
    public let account: AccountView
    /// False if there was nothing to sign out of.
    public let hadSession: Bool
    /// The provider was not told of this sign-out or an earlier one yet. It will be, as long as the account is
    /// configured.
    public let isRevocationPending: Bool
    public let revocation: RevocationState?
    /// The session that ended, if the provider has not revoked it; nil otherwise.
    public let leftover: Leftover?

    public struct Leftover: Sendable {
        public let hasAccessToken: Bool
        public let hasRefreshToken: Bool
        /// Nil where the provider states no lifetime.
        public let accessTokenExpiry: WallInstant?
        public let refreshTokenExpiry: WallInstant?

        init(_ session: Session, by clock: BrokerClock) {
            let token = session.tokens[.own]
            hasAccessToken = token?.isValid(at: clock.bootInstant) == true
            accessTokenExpiry = token?.expiry?.wall(by: clock)
            hasRefreshToken = !session.refreshTokens.isEmpty
            refreshTokenExpiry = session.end?.wall(by: clock)
        }
    }
}

public enum RevocationState: Sendable, Equatable {
    case revoked
    /// The provider has no endpoint for it, or does not support it for such tokens.
    case notOffered
    /// It is sent later: the provider could not be reached.
    case pending
    /// The provider refused it. It is sent a few times more.
    case refused(BrokerError)
}

extension VaultSlot {
    /// Where the users who have signed in under the same binding are remembered.
    var ofUsers: VaultSlot { VaultSlot(account: account, binding: binding, kind: .people) }
}

/// What became of a session that was to be refreshed with others. The error is nil if it was refreshed.
public typealias SessionRefresh = (account: AccountName, error: BrokerError?)

/// Every session of a user that a broker holds.
public struct EverySession: Sendable {
    public typealias Condition = @Sendable (VaultSlot) async -> Bool

    /// How many sessions are refreshed at once.
    private static let mostAtOnce = 8

    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// The accounts whose sessions are in a slot that fulfils the condition, sorted.
    public func names(where isWanted: Condition) async -> [AccountName] {
        var names: [AccountName] = []
        for account in await broker.accounts() where EverySession.isHeld(account) {
            if await fulfils(account.name, isWanted) { names.append(account.name) }
        }
        return names.sorted { $0.rawValue < $1.rawValue }
    }

    /// Refreshes each session whose slot fulfils the condition once, so that copies of its tokens become invalid. It is
    /// done also if the caller disconnects. Sorted by account.
    public func refresh(where isWanted: @escaping Condition) async -> [SessionRefresh] {
        let names = await names(where: isWanted)
        let refreshing = broker.work.start {
            await withTaskGroup(of: SessionRefresh.self) { group in
                var (outcomes, rest): ([SessionRefresh], ArraySlice<AccountName>) = ([], names[...])
                for name in rest.prefix(EverySession.mostAtOnce) { group.addTask { await refresh(name, isWanted) } }
                rest = rest.dropFirst(EverySession.mostAtOnce)
                for await outcome in group {
                    outcomes.append(outcome)
                    if let name = rest.popFirst() { group.addTask { await refresh(name, isWanted) } }
                }
                return outcomes
            }
        }
        return (await refreshing.wait() ?? []).sorted { $0.account.rawValue < $1.account.rawValue }
    }

    private func refresh(_ name: AccountName, _ isWanted: Condition) async -> SessionRefresh {
        // It may have been refreshed since, here or by another host.
        guard await fulfils(name, isWanted) else { return (name, nil) }
        do throws(BrokerError) {
            _ = try await broker.refresh(name, isForced: true)
            return (name, nil)
        } catch {
            return (name, error)
        }
    }

    private static func isHeld(_ account: AccountView) -> Bool {
        account.kind.needsSignIn && (account.state == .authenticated || account.state == .refreshing)
    }

    private func fulfils(_ name: AccountName, _ isWanted: Condition) async -> Bool {
        guard let account = try? await broker.sessionManager.account(name) else { return false }
        return await isWanted(account.slot)
    }
}
