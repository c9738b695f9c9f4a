internal import OAuth
internal import SessionVault
internal import StrictJSON

/// What opens and closes a session, each in its turn.
extension SessionManager {
    /// Takes a signed-in session over. While the account holds one, another subject is refused. Returns the session
    /// that it replaces where its server has to be told, see ``Broker/open(_:for:switchingSubject:told:)``.
    func open(
        _ session: Session, for account: Account, switchingSubject: Bool, told kind: BrokerEvent.Kind? = nil
    ) async -> Result<Closed?, BrokerError> {
        let name = account.name
        let opening = enqueue(name) { sessionManager -> Result<Closed?, BrokerError> in
            // Between an unlock and the load that follows it, nobody knows yet whose session would be written over.
            if let lane = sessionManager.lanes[name] { await sessionManager.loadInTurn(lane, isNews: false) }
            guard let lane = sessionManager.lanes[name], lane.account.binding == account.binding else {
                return .failure(.flowCancelled("The configuration of \(name) changed during the sign-in."))
            }
            if let error = sessionManager.lockError { return .failure(error) }
            if let error = lane.untouchable ?? lane.loadFailure { return .failure(error) }
            guard lane.isLoaded else {
                return .failure(.vaultFailed("What the vault holds for \(name) is not loaded. Sign in again."))
            }
            if let held = lane.session, !held.isSamePerson(as: session), !switchingSubject {
                return .failure(
                    .conflict(
                        "\(name) is signed in as \(held.displayName), and this sign-in is by \(session.displayName). "
                            + "Nothing was changed. Sign out first, or ask to switch."))
            }
            var session = session
            if let held = lane.session { session.keepRefreshToken(of: held) }
            // What is not to be written takes the place of what was.
            if session.isEphemeral { try? await sessionManager.vault.remove(account.slot) }
            let saved = await sessionManager.save(session, account)
            guard sessionManager.lanes[name]?.generation == lane.generation else {
                return .failure(.flowCancelled("The configuration of \(name) changed during the sign-in."))
            }
            sessionManager.lanes[name]?.error = saved ?? sessionManager.waiting(for: session, account)
            sessionManager.lanes[name]?.isUnsaved = saved != nil
            sessionManager.lanes[name]?.isOverdue = false
            sessionManager.lanes[name]?.backoff = Backoff()
            sessionManager.lanes[name]?.lastRefresh = nil
            sessionManager.hold(session, name)
            sessionManager.record(
                .sessionOpened(name, subject: session.subject, replacing: lane.session.map(\.subject)))
            sessionManager.post(kind ?? (session.isRecovery ? .passwordRecovery : .signedIn), name, session: session)
            await sessionManager.noteIdentities(of: account, opening: session, over: lane.session, isAsked: kind != nil)
            // While the vault cannot write, the former session is what a restart finds: it stays alive at the server.
            return .success(saved == nil ? lane.replaced(by: session) : nil)
        }
        return await opening.wait() ?? .failure(.cancelled)
    }

    /// Ends the session here. Readers see none from this call on; the change itself takes its turn, so that what is
    /// returned for revocation holds the newest tokens.
    ///
    /// The vault takes the session out of its slot in one step and keeps it until the provider has heard.
    func close(_ name: AccountName, endingAll: Bool = false) async throws(BrokerError) -> Closed? {
        try await ready(name)
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
        lanes[name]?.closings += 1
        lanes[name]?.error = nil
        snapshot.publish(nil, for: name)
        let generation = lanes[name]?.generation
        let closing = enqueue(name) { sessionManager -> Result<Closed?, BrokerError> in
            // A lane that took this one's place has a session of another binding, which nobody asked to close.
            guard sessionManager.lanes[name]?.generation == generation else { return .success(nil) }
            defer {
                if sessionManager.lanes[name]?.generation == generation { sessionManager.lanes[name]?.closings -= 1 }
                sessionManager.publish(name)
                sessionManager.schedule(name)
            }
            if let error = sessionManager.lockError { return .failure(error) }
            guard let lane = sessionManager.lanes[name] else { return .success(nil) }
            if lane.account.grant != nil { return .success(sessionManager.dropTokens(of: lane)) }
            guard var session = lane.session else {
                // What says that the provider ended the last one has been read.
                if lane.untouchable == nil { try? await sessionManager.vault.remove(lane.account.slot) }
                return .success(nil)
            }
            session.project?.endsAll = endingAll
            var closed = Closed(account: lane.account, session: session, retirement: nil)
            // What the vault keeps until the provider has heard should be the newest, and say what is to be told.
            if lane.isUnsaved || session != lane.session { _ = await sessionManager.save(session, lane.account) }
            await sessionManager.rememberIdentities(of: session, lane.account)
            do throws(VaultError) {
                closed.retirement = try await sessionManager.vault.retire(lane.account.slot)?.id
            } catch {
                // What was damaged underneath has been set aside: it is out of its slot too.
                guard case .damaged = error else { return .failure(BrokerError(error)) }
            }
            sessionManager.unwritten[lane.account.slot] = nil
            guard sessionManager.lanes[name]?.generation == generation else { return .success(closed) }
            sessionManager.lanes[name]?.session = nil
            sessionManager.lanes[name]?.isUnsaved = false
            sessionManager.lanes[name]?.isOverdue = false
            sessionManager.lanes[name]?.backoff = Backoff()
            sessionManager.lanes[name]?.lastRefresh = nil
            sessionManager.record(.sessionClosed(name, subject: session.subject))
            sessionManager.post(.signedOut, name, session: session, state: .unauthenticated)
            return .success(closed)
        }
        guard let result = await closing.wait() else { throw .cancelled }
        return try result.get()
    }

    /// Shows a failure that left the session as it was.
    func note(_ error: BrokerError, _ name: AccountName, as kind: BrokerEvent.Kind) {
        lanes[name]?.error = error
        post(kind, name, session: lanes[name]?.session, error: error)
    }

    /// A sign-in starts: the last failure is history.
    func clearError(_ name: AccountName) { lanes[name]?.error = nil }
}

/// A session that is over here, and that its provider has yet to hear of.
struct Closed: Sendable {
    let account: Account
    /// As memory held it: not older than what the vault keeps.
    let session: Session
    /// The vault's name for what it keeps until the provider has heard; nil if it held nothing.
    var retirement: String?
}

extension Account {
    var slot: VaultSlot { VaultSlot(account: name.rawValue, binding: bindingID) }
}

extension Session {
    /// What people call this person.
    public var displayName: String { user?["email"]?.string ?? subject ?? "an unnamed person" }

    /// At a place that many directories share, a subject is somebody within its issuer alone.
    func isSamePerson(as other: Session) -> Bool {
        guard Session.isSame(subject, other.subject) else { return false }
        guard let issuer = identity?.issuer, let theirs = other.identity?.issuer else { return true }
        return Session.isSame(issuer, theirs)
    }

    /// Compares bytes: `==` holds two spellings of an accented letter for one person.
    static func isSame(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}

extension BrokerError {
    init(_ error: VaultError) {
        switch error {
        case .locked(let reason): self = .vaultLocked(reason)
        case .wrongPassphrase: self = .wrongPassphrase
        case .unwritable(let reason), .damaged(let reason), .newer(let reason): self = .vaultFailed(reason)
        case .refused(let reason): self = .conflict(reason)
        }
    }

    /// What keeps a vault from being opened: whatever it is, the vault is locked until it is mended.
    init(opening error: VaultError) {
        switch error {
        case .wrongPassphrase: self = .wrongPassphrase
        case .locked(let reason), .unwritable(let reason), .damaged(let reason), .newer(let reason),
            .refused(let reason):
            self = .vaultLocked(reason)
        }
    }
}
