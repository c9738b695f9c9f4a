internal import RingbackBase
public import SessionVault

extension SessionManager {
    /// Takes over a signed-in session. While the account holds one, another subject is refused unless the opening says
    /// otherwise. The session that it replaces is ended at the provider, see ``Broker/open(_:for:_:)``.
    func open(_ session: Session, for account: Account, _ opening: SessionOpening) async throws(BrokerError) {
        try await inTurn(account.name) { sessionManager throws(BrokerError) in
            let lane = try await sessionManager.laneForOpening(account)
            try await sessionManager.openInTurn(session, lane, opening)
        }
    }

    /// Takes over a session that is made by presenting a refresh token. The token is presented in the account's lane,
    /// and only after the vault has reserved room for the response. It is not presented if the account is signed in as
    /// another user than `subject`; nil if the caller asked to switch.
    func open(
        for account: Account, isEphemeral: Bool, subject: String?,
        made make: @escaping @Sendable (RefreshAttempt) async throws(BrokerError) -> (Session, SessionOpening)
    ) async throws(BrokerError) {
        try await inTurns(account.name) { sessionManager throws(BrokerError) in
            var lane = try await sessionManager.laneForOpening(account)
            try Replacement.check(subject, in: lane)
            var permit = RefreshPermit.ofMemory
            while !isEphemeral {
                if let granted = try await RefreshTurn(lane: lane).announce(
                    presenting: nil, isSignIn: true, by: sessionManager)
                {
                    permit = granted
                    break
                }
                lane = try await sessionManager.laneForOpening(account)
                try Replacement.check(subject, in: lane)
            }
            let (session, opening): (Session, SessionOpening)
            do throws(BrokerError) {
                (session, opening) = try await make(permit.attempt())
            } catch {
                await RefreshTurn(lane: lane).settle(by: sessionManager)
                throw error
            }
            try await sessionManager.openInTurn(session, lane, opening)
        }
    }

    private func laneForOpening(_ account: Account) async throws(BrokerError) -> Lane {
        let name = account.name
        // Between an unlock and the load that follows it, it is not known yet whose session would be overwritten.
        if let lane = lanes[name] { await loadInTurn([lane.id], isAfterReload: false) }
        guard let lane = lanes[name], lane.account.binding == account.binding else {
            throw .flowCancelled(.configurationChanged(name))
        }
        if let error = lockError ?? lane.state.obstacle { throw error }
        guard lane.state.isLoaded else {
            throw .vaultFailed(.stated("What the vault holds for \(name) is not loaded. Sign in again."))
        }
        return lane
    }

    private func openInTurn(_ session: Session, _ lane: Lane, _ opening: SessionOpening) async throws(BrokerError) {
        let (account, provider) = (lane.account, provider(lane.account))
        let next = try Replacement(of: session, in: lane, by: provider, opening)
        var replaced = detached.replaced(in: account.slot)
        if let closed = next.replaced { replaced.add(closed) }
        if let family = provider.family(of: next.session) {
            replaced.remove { provider.family(of: $0) == family }
            detached.keep { provider.family(of: $0) == family }
        }
        if session.isEphemeral {
            // Nothing of the new one is to be written, so the former one is taken out of its slot. If that cannot be
            // done, the sign-in fails: the former session would be back after a restart. Without a former session the
            // slot holds at most a record that says how the last one ended.
            var retirement: String?
            do throws(BrokerError) {
                retirement = try await store.empty(account.slot, isKept: replaced.holdsStored)
            } catch {
                if next.former != nil { throw error }
            }
            detached.replace(replaced, in: account.slot)
            detached.settle(account.slot, retirement: retirement)
        } else {
            detached.replace(replaced, in: account.slot)
        }
        // A restart may find the former session: it is ended at the provider only when the vault holds this one.
        let error = await save(next.session, account, as: .replacement)
        let held = HeldSession(next.session, isUnsaved: error != nil)
        guard take(.opened(held, opening.event, error ?? opening.notice), lane.id) else {
            throw .flowCancelled(.configurationChanged(account.name))
        }
        await observer(of: account)?.opened(
            next.session, over: next.former, of: account, isAsked: opening.isAsked)
    }

    /// Ends the session here. From this call on readers see no session. The change itself takes its turn, so that what
    /// is returned for revocation holds the newest tokens.
    ///
    /// `hadSession`: a session, an unreadable record, or one of an end.
    func close(
        _ name: AccountName, endingAll: Bool = false
    ) async throws(BrokerError) -> (hadSession: Bool, closed: Closed?) {
        try await ready(name)
        guard let lane = lanes[name] else { throw .accountNotFound(name.rawValue) }
        let (id, hadSession) = (lane.id, lane.state.presence != .absent(.signedOut))
        take(.signOutBegan, id)
        return try await inTurn(name) { sessionManager throws(BrokerError) in
            // A lane that replaced this one has a session of another binding, which the caller did not ask to close.
            guard let lane = sessionManager.lane(id) else { return (hadSession, nil) }
            defer { sessionManager.take(.signOutEnded, id) }
            if let error = sessionManager.lockError { throw error }
            return (hadSession, try await sessionManager.closeInTurn(lane, endingAll))
        }
    }

    func closeInTurn(_ lane: Lane, _ endsAll: Bool) async throws(BrokerError) -> Closed? {
        let account = lane.account
        if let rest = account.kind.configuredSession(of: account, by: clock) {
            // The configuration keeps the account signed in. Only the tokens are dropped.
            guard let session = lane.state.session, !session.tokens.isEmpty else { return nil }
            take(.closed(leaving: rest), lane.id)
            return Closed(account: account, session: session)
        }
        guard let session = lane.state.session else {
            // Removes the record, if there is one, that says that the provider ended the last session.
            if lane.state.obstacle == nil { try? await vault.remove(account.slot) }
            return nil
        }
        // The record that the vault keeps for the revocation must hold the newest tokens, and `endsAll`.
        if lane.state.isUnsaved || endsAll {
            _ = await save(session, account, as: .replacement, endingAll: endsAll)
        }
        await observer(of: account)?.leaving(session, of: account)
        // If this session could not be written, the record is of one that it replaced.
        let keepsOther = detached.replaced(in: account.slot).holdsStored
        let retirement = try await store.empty(account.slot, isKept: true)
        detached.settle(account.slot, retirement: retirement)
        take(.closed(leaving: nil), lane.id)
        return Closed(
            account: account, session: session, endsAll: endsAll, retirement: keepsOther ? nil : retirement)
    }

    /// Changes what is stored with a session, in its turn. No request is sent to the provider.
    public func edit(
        _ name: AccountName, _ edit: @escaping @Sendable (inout Session) throws(BrokerError) -> Void
    ) async throws(BrokerError) {
        try await ready(name)
        let id = try holding(name).lane.id
        try await inTurn(name) { sessionManager throws(BrokerError) in
            guard let lane = sessionManager.lane(id), let held = lane.state.visible else { throw .signInRequired(name) }
            var session = held
            try edit(&session)
            guard session != held else { return }
            if let error = await sessionManager.save(session, lane.account, as: .edit) { throw error }
            guard sessionManager.take(.changed(session, nil, nil), id) else { throw .signInRequired(name) }
        }
    }

    /// Shows a failure that left the session as it was, and posts it as an event of this kind.
    public func show(_ error: BrokerError, _ name: AccountName, as kind: BrokerEvent.Kind? = nil) {
        if let id = lanes[name]?.id { take(.noticed(error, kind), id) }
    }

    func clearError(_ name: AccountName) { if let id = lanes[name]?.id { take(.signInBegan, id) } }
}

/// A session that is put in a lane, and what happens to the session that it replaces.
struct Replacement: Sendable {
    let session: Session
    let former: Session?
    /// The former session, if the provider has to end it: not if it only got other tokens, or has no family.
    private(set) var replaced: Closed?

    /// Throws if the subject differs from that of the lane's session. A nil subject is accepted.
    static func check(_ subject: String?, in lane: SessionManager.Lane) throws(BrokerError) {
        guard let subject, let former = lane.state.session, !Session.isSame(former.subject, subject) else { return }
        throw .otherUser(lane.account.name, former.displayName, by: subject)
    }

    init(
        of session: Session, in lane: SessionManager.Lane, by provider: any SignInProvider, _ opening: SessionOpening
    ) throws(BrokerError) {
        former = lane.state.session
        guard let former else {
            self.session = session
            return
        }
        guard former.isSameUser(as: session) || opening.switchesSubject else {
            throw .otherUser(lane.account.name, former.displayName, by: session.displayName)
        }
        var session = session
        let family = provider.family(of: former)
        session.keepRefreshToken(of: former, isSameFamily: family == provider.family(of: session))
        if let family, let other = provider.family(of: session), family != other {
            replaced = Closed(account: lane.account, session: former)
        }
        self.session = session
    }
}

extension BrokerError {
    fileprivate static func otherUser(_ name: AccountName, _ held: String?, by other: String?) -> BrokerError {
        .conflict(.session(.otherUser(name, held: held, other: other)))
    }
}

/// A session that has ended here and whose provider has not been told yet.
struct Closed: Sendable {
    var account: Account
    /// As memory held it, which is not older than what the vault keeps.
    let session: Session
    var endsAll = false
    /// The vault's identifier of what it keeps until the provider has been told; nil if it held nothing.
    var retirement: String?

    /// Tells the provider. A failure is not tried again: nothing of the session may be kept here.
    func revokeOnce(with tools: ProviderTools) async {
        do throws(BrokerError) {
            let isOffered = try await account.provider(with: tools).revoke(session, endingAll: endsAll)
            tools.record(isOffered ? .revocationDelivered(account.name) : .revocationNotOffered(account.name))
        } catch {
            tools.record(.revocationAbandoned(account.name))
        }
    }
}

extension Session {
    /// How the user is named in messages; nil for a user about whom nothing is known.
    public var displayName: String? { Session.name(of: user, subject) }

    /// An address, a number or a name, else the subject. Some providers return an empty address for users without one.
    static func name(of user: JSONObject?, _ subject: String?) -> String? {
        ["email", "phone", "name"].lazy.compactMap { user?[$0]?.string }.first { !$0.isEmpty } ?? subject
    }

    /// Where several directories share a provider, a subject is unique only within its issuer.
    public func isSameUser(as other: Session) -> Bool {
        guard Session.isSame(subject, other.subject) else { return false }
        guard let issuer = identity?.issuer, let theirs = other.identity?.issuer else { return true }
        return Session.isSame(issuer, theirs)
    }

    /// Compares bytes: `==` treats two spellings of an accented letter as equal.
    public static func isSame(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}

extension BrokerError {
    public init(_ error: VaultError) {
        switch error {
        case .locked(_, let obstacle): self = .vaultLocked(.vault(error), obstacle: obstacle)
        case .wrongPassphrase: self = .wrongPassphrase
        // What does not open with the hosts' key does not end by itself.
        case .unwritable, .damaged, .newer, .unreachable(.foreignRow): self = .vaultFailed(.vault(error))
        case .unreachable: self = .vaultUnreachable(.vault(error))
        case .refused(_, let obstacle): self = .conflict(.vault(error), cause: obstacle.map { .vault($0) })
        }
    }

    public static func mapping<Value>(
        _ body: () async throws(VaultError) -> Value
    ) async throws(BrokerError) -> Value {
        do throws(VaultError) {
            return try await body()
        } catch {
            throw BrokerError(error)
        }
    }

    /// If the vault cannot be opened, for whatever reason, it is locked until the cause is fixed.
    init(opening error: VaultError) {
        switch error {
        case .wrongPassphrase: self = .wrongPassphrase
        case .locked(_, let obstacle), .refused(_, let obstacle):
            self = .vaultLocked(.vault(error), obstacle: obstacle)
        case .unwritable, .damaged, .newer, .unreachable: self = .vaultLocked(.vault(error))
        }
    }
}
