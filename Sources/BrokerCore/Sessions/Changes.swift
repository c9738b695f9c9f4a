public import SessionVault
internal import StrictJSON

/// Opens and closes sessions. Each change waits for its turn in the account's lane.
extension SessionManager {
    /// Takes over a signed-in session. While the account holds one, another subject is refused unless the opening says
    /// otherwise. Returns the session that it replaces if the provider has to end it, see ``Broker/open(_:for:_:)``.
    func open(
        _ session: Session, for account: Account, _ opening: SessionOpening
    ) async -> Result<Closed?, BrokerError> {
        let turn = enqueue(account.name) { sessionManager -> Result<Closed?, BrokerError> in
            do throws(BrokerError) {
                let lane = try await sessionManager.laneForOpening(account)
                return .success(try await sessionManager.openInTurn(session, lane, opening))
            } catch {
                return .failure(error)
            }
        }
        return await turn.wait() ?? .failure(.cancelled)
    }

    /// Takes over a session that is made by presenting a refresh token. The token is presented in the account's lane,
    /// and only after the vault has reserved room for the response.
    func open(
        for account: Account, isEphemeral: Bool,
        made make: @escaping @Sendable () async throws(BrokerError) -> (Session, SessionOpening)
    ) async throws(BrokerError) -> Closed? {
        let turn = enqueue(account.name) { sessionManager -> Result<Closed?, BrokerError> in
            do throws(BrokerError) {
                let lane = try await sessionManager.laneForOpening(account)
                if !isEphemeral { try await sessionManager.makeRoom(account, isNeeded: true) }
                let (session, opening): (Session, SessionOpening)
                do throws(BrokerError) {
                    (session, opening) = try await make()
                } catch {
                    await sessionManager.settle(lane)
                    throw error
                }
                return .success(try await sessionManager.openInTurn(session, lane, opening))
            } catch {
                return .failure(error)
            }
        }
        guard let result = await turn.wait() else { throw .cancelled }
        return try result.get()
    }

    /// The account's lane, if a session may be stored there.
    private func laneForOpening(_ account: Account) async throws(BrokerError) -> Lane {
        let name = account.name
        // Between an unlock and the load that follows it, it is not known yet whose session would be overwritten.
        if let lane = lanes[name] { await loadInTurn(lane.id, isNews: false) }
        guard let lane = lanes[name], lane.account.binding == account.binding else {
            throw .flowCancelled("The configuration of \(name) changed during the sign-in.")
        }
        if let error = lockError ?? lane.state.obstacle { throw error }
        guard lane.state.isLoaded else {
            throw .vaultFailed("What the vault holds for \(name) is not loaded. Sign in again.")
        }
        return lane
    }

    /// Returns the session that this one replaces, if the provider has to end it.
    private func openInTurn(
        _ session: Session, _ lane: Lane, _ opening: SessionOpening
    ) async throws(BrokerError) -> Closed? {
        let (name, account) = (lane.id.account, lane.account)
        let former = lane.state.session
        if let former, !former.isSameUser(as: session), !opening.switchesSubject {
            throw .conflict(
                "\(name) is signed in as \(former.displayName), and this sign-in is by \(session.displayName). "
                    + "Nothing was changed. Sign out first, or ask to switch.")
        }
        var session = session
        if let former {
            let provider = provider(account)
            session.inherit(
                from: former, isSameFamily: provider.family(of: former) == provider.family(of: session))
        }
        var replaced = replaced(by: session, in: lane)
        let isReplacing = replaced != nil
        var retirement = session.isEphemeral ? try await empty(account.slot, for: lane, isReplacing) : nil
        let (copy, error, retired) = await save(session, account, isReplacing: isReplacing)
        retirement = retired ?? retirement
        replaced?.retirement = retirement
        guard take(.opened(session, copy, opening.event, error ?? opening.notice), lane.id) else {
            throw .flowCancelled("The configuration of \(name) changed during the sign-in.")
        }
        await observer(of: account)?.opened(session, over: former, of: account, isAsked: opening.isAsked)
        // If the vault cannot be written, a restart finds the former session. So it is not ended at the provider.
        return copy == .unsaved ? nil : replaced
    }

    /// Takes the former session out of its slot, since nothing of the new one is to be written. If that cannot be done,
    /// the sign-in fails: the former session would be back after a restart.
    private func empty(_ slot: VaultSlot, for lane: Lane, _ isReplaced: Bool) async throws(BrokerError) -> String? {
        do throws(VaultError) {
            // The vault keeps it until the provider has been told.
            if isReplaced { return try await vault.retire(slot)?.id }
            try await vault.remove(slot)
        } catch {
            // The vault has set a damaged record aside, so that the slot is empty too.
            if case .damaged = error { return nil }
            // Without a former session the slot holds at most a record that says how the last one ended.
            if lane.state.session != nil { throw BrokerError(error) }
        }
        return nil
    }

    /// Ends the session here. From this call on readers see no session. The change itself takes its turn, so that what
    /// is returned for revocation holds the newest tokens.
    ///
    /// The vault takes the session out of its slot in one step and keeps it until the provider has been told.
    func close(_ name: AccountName, endingAll: Bool = false) async throws(BrokerError) -> Closed? {
        try await ready(name)
        guard let id = lanes[name]?.id else { throw .accountNotFound(name.rawValue) }
        take(.signOutBegan, id)
        let closing = enqueue(name) { sessionManager -> Result<Closed?, BrokerError> in
            // A lane that replaced this one has a session of another binding, which nobody asked to close.
            guard let lane = sessionManager.lane(id) else { return .success(nil) }
            defer { sessionManager.take(.signOutEnded, id) }
            if let error = sessionManager.lockError { return .failure(error) }
            return await sessionManager.closeInTurn(lane, endingAll)
        }
        guard let result = await closing.wait() else { throw .cancelled }
        return try result.get()
    }

    private func closeInTurn(_ lane: Lane, _ endsAll: Bool) async -> Result<Closed?, BrokerError> {
        let account = lane.account
        if let rest = account.kind.configuredSession(of: account, by: clock) {
            // A service drops the tokens that it fetched. Its configuration keeps it signed in.
            guard let session = lane.state.session, !session.tokens.isEmpty else { return .success(nil) }
            take(.closed(leaving: rest), lane.id)
            return .success(Closed(account: account, session: session, retirement: nil))
        }
        guard var session = lane.state.session else {
            // Removes the record, if there is one, that says that the provider ended the last session.
            if lane.state.obstacle == nil { try? await vault.remove(account.slot) }
            return .success(nil)
        }
        session.endsAll = endsAll
        var closed = Closed(account: account, session: session, retirement: nil)
        // What the vault keeps until the provider has been told must hold the newest tokens, and `endsAll`.
        if lane.state.isUnsaved || session != lane.state.session { _ = await save(session, account) }
        await observer(of: account)?.leaving(session, of: account)
        do throws(VaultError) {
            closed.retirement = try await vault.retire(account.slot)?.id
        } catch {
            // The vault has set a damaged record aside, so that the slot is empty too.
            guard case .damaged = error else { return .failure(BrokerError(error)) }
        }
        residue.settle(account.slot)
        take(.closed(leaving: nil), lane.id)
        return .success(closed)
    }

    /// Changes what is stored with a session, in its turn. No request is sent to the provider.
    func edit(
        _ name: AccountName, _ edit: @escaping @Sendable (inout Session) throws(BrokerError) -> Void
    ) async throws(BrokerError) {
        try await ready(name)
        guard let id = lanes[name]?.id else { throw .accountNotFound(name.rawValue) }
        guard try readable(name) != nil else { throw absence(of: name) }
        let turn = enqueue(name) { sessionManager -> Result<Void, BrokerError> in
            guard let lane = sessionManager.lane(id), let held = lane.state.visible else {
                return .failure(.signInRequired(name))
            }
            var session = held
            do throws(BrokerError) { try edit(&session) } catch { return .failure(error) }
            guard session != held else { return .success(()) }
            let (copy, error) = await sessionManager.save(session, lane.account)
            if let error { return .failure(error) }
            let isTaken = sessionManager.take(.changed(session, copy, nil, nil), id)
            return isTaken ? .success(()) : .failure(.signInRequired(name))
        }
        guard let result = await turn.wait() else { throw .cancelled }
        try result.get()
    }

    /// Shows a failure that left the session as it was.
    func note(_ error: BrokerError, _ name: AccountName, as kind: BrokerEvent.Kind) {
        if let id = lanes[name]?.id { take(.noticed(error, kind), id) }
    }

    /// A sign-in starts: the last failure is not shown any more.
    func clearError(_ name: AccountName) { if let id = lanes[name]?.id { take(.signInBegan, id) } }
}

/// A session that has ended here and whose provider has not been told yet.
struct Closed: Sendable {
    let account: Account
    /// As memory held it, which is not older than what the vault keeps.
    let session: Session
    /// The vault's identifier of what it keeps until the provider has been told; nil if it held nothing.
    var retirement: String?
}

extension Session {
    /// How the user is named in messages.
    public var displayName: String { user?["email"]?.string ?? subject ?? "an unnamed person" }

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
        case .locked(let reason, let obstacle): self = .vaultLocked(reason, obstacle: obstacle)
        case .wrongPassphrase: self = .wrongPassphrase
        case .unwritable(let reason), .damaged(let reason), .newer(let reason): self = .vaultFailed(reason)
        case .refused(let reason, let obstacle): self = .conflict(reason, cause: obstacle.map { .vault($0) })
        }
    }

    /// If the vault cannot be opened, for whatever reason, it is locked until the cause is fixed.
    init(opening error: VaultError) {
        switch error {
        case .wrongPassphrase: self = .wrongPassphrase
        case .locked(let reason, let obstacle), .refused(let reason, let obstacle):
            self = .vaultLocked(reason, obstacle: obstacle)
        case .unwritable(let reason), .damaged(let reason), .newer(let reason): self = .vaultLocked(reason)
        }
    }
}
