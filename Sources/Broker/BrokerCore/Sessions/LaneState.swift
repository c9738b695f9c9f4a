internal import SessionVault

/// The state of one account and its transitions: a value without suspension points, which takes outcomes ("a refresh
/// failed") and returns effects. Requests and vault writes stay in straight-line functions, because their order is the
/// proof that no refresh token is lost.
struct LaneState: Sendable {
    enum Presence: Sendable, Equatable {
        /// The vault has not been read yet. The error is why the last attempt failed.
        case loading(BrokerError?)
        case absent(Absence)
        /// The vault holds a record that must not be overwritten.
        case untouchable(BrokerError)
        case held(HeldSession)
    }

    enum Absence: Sendable, Equatable {
        case signedOut
        /// `code` is the provider's own if it says more than `invalid_grant`, `message` its text; `hasMoved` as
        /// ``Session/hasMoved``.
        case ended(code: String?, message: String? = nil, hasMoved: Bool = false)
        /// The vault's record could not be read and has been set aside.
        case unreadable(BrokerError)
    }

    /// The refreshes and other changes that are queued or running in the lane, and when the next may be requested.
    struct Renewal: Sendable {
        /// Outlives the session and a lock: the provider's `Retry-After` must pass.
        var backoff = Backoff()
        /// The refreshes that callers can join. They may be queued behind a change.
        var running: [TokenKey: Promise<Result<Void, BrokerError>>] = [:]
        /// Refreshes in a row that the provider refused. One that could not reach it does not count.
        var refusals = 0
        /// A change that is not a refresh is running. The tasks are scheduled again when it ends.
        var isChangeRunning = false

        mutating func sessionEnded() {
            backoff.keepOnlyRetryAfter()
            refusals = 0
        }

        /// The provider has just accepted the session, so that there is nothing to wait for.
        mutating func succeeded() {
            backoff = Backoff()
            refusals = 0
        }
    }

    private(set) var presence = Presence.loading(nil)
    private(set) var renewal = Renewal()
    /// Several callers may sign out at once. While this is positive, readers see no session.
    private(set) var signOutsInProgress = 0
    /// The last failure that left the session as it was. Cleared when the next sign-in, sign-out or refresh starts,
    /// and when the file that it is about can be used again.
    private(set) var problem: BrokerError?

    /// - Parameter backoff: of the lane that this one replaces, if there was one.
    init(backoff: Backoff? = nil) { if let backoff { renewal.backoff = backoff } }

    private(set) var held: HeldSession? {
        get { if case .held(let held) = presence { held } else { nil } }
        set { if let newValue { presence = .held(newValue) } }
    }
    var session: Session? { held?.session }
    var visible: Session? { signOutsInProgress == 0 ? session : nil }
    var isLoaded: Bool { if case .loading = presence { false } else { true } }
    var isUnsaved: Bool { held?.isUnsaved == true }

    /// Why a new session must not be written; nil if it may.
    var obstacle: BrokerError? {
        switch presence {
        case .loading(let error): error
        case .untouchable(let error): error
        case .absent, .held: nil
        }
    }

    func error(of name: AccountName) -> BrokerError? { problem ?? obstacle ?? absence(of: name) }

    /// Why there is no session; nil if the user has simply not signed in.
    func absence(of name: AccountName) -> BrokerError? {
        if case .absent(.unreadable(let error)) = presence { error } else { ending(of: name) }
    }

    func ending(of name: AccountName) -> BrokerError? {
        guard case .absent(.ended(let code, let message, let hasMoved)) = presence else { return nil }
        return .sessionExpired(name, word: code, message: message, hasMoved: hasMoved)
    }

    // MARK: Transitions

    /// Takes an outcome and returns what follows from it, in order. An outcome that makes no sense in the present state
    /// changes nothing and has no effects: it comes from work that began before the state changed.
    mutating func take(_ outcome: Outcome, of name: AccountName, at now: BootInstant) -> [Effect] {
        switch outcome {
        case .loaded(let loaded, let isAfterReload): return load(loaded, isAfterReload, name)
        case .changedElsewhere(let loaded): return applyRemoteChange(loaded, name)
        case .opened(let held, let kind, let error): return open(held, kind, error, name)
        case .rotated, .renewed, .changed, .failed, .dead, .saved, .notSaved, .becameUrgent:
            guard let held else { return [] }
            return hold(held, after: outcome, name, now)
        case .refreshBegan(let key, let promise):
            problem = nil
            renewal.running[key] = promise
            if key == .own { held?.refreshBegan() }
            return [.schedule]
        case .refreshEnded(let key, let error):
            renewal.running[key] = nil
            if key == .own { held?.refreshEnded(error, at: now) }
            return [.schedule]
        case .changing(let isRunning):
            renewal.isChangeRunning = isRunning
            return [.schedule]
        case .signInBegan, .signOutBegan:
            problem = nil
            if case .absent = presence { presence = .absent(.signedOut) }
            guard case .signOutBegan = outcome else { return [] }
            signOutsInProgress += 1
            return [.publish, .schedule]
        case .closed(let rest): return close(leaving: rest, name)
        case .signOutEnded:
            guard signOutsInProgress > 0 else { return [] }
            signOutsInProgress -= 1
            return [.publish, .schedule]
        case .dropped:
            guard session?.isEphemeral == true else { return [] }
            presence = .absent(.signedOut)
            return [.publish, .schedule]
        case .locked:
            (presence, problem) = (.loading(nil), nil)
            return [.publish, .schedule, .wake]
        case .replaced:
            let former = session
            (presence, problem) = (.loading(nil), nil)
            return [.publish, .schedule] + (former.map { [.post(.signedOut, $0)] } ?? []) + [.wake]
        case .noticed(let error, let kind):
            // A refused callback leaves the account as it is; its flow shows the reason.
            if kind != .callbackRefused { problem = error }
            return kind.map { [.post($0, session, error)] } ?? []
        case .networkReturned:
            guard renewal.backoff.error?.isOfNetwork == true else { return [] }
            renewal.backoff.allowEarlyRetry(at: now)
            return [.schedule]
        case .configurationFixed:
            renewal.backoff = Backoff()
            return [.schedule]
        case .reloaded(let isChanged): return forgetFixedProblem(isChanged)
        case .settingFixed(let setting):
            guard problem == .unusableSetting(setting) else { return [] }
            problem = nil
            // A refresh that failed for it is tried again at once.
            if renewal.backoff.error == .unusableSetting(setting) { renewal.backoff = Backoff() }
            return [.schedule]
        }
    }

    /// A reload clears a problem that nothing is retried for, since no later success would clear it. Problems of the
    /// vault stay, and so does a session that has run out. What the provider refused or a setting prevents stays too,
    /// unless the account's settings have changed.
    private mutating func forgetFixedProblem(_ isChanged: Bool) -> [Effect] {
        guard renewal.backoff.error == nil else { return [] }
        switch problem {
        case .sessionRanOut?, .vaultFailed?, .vaultUnreachable?, .vaultLocked?: break
        case .provider(.refused)?, .serviceRefused?, .misconfigured?, .unusableSetting?:
            if isChanged { problem = nil }
        default: problem = nil
        }
        return []
    }

    private mutating func load(_ loaded: Loaded, _ isAfterReload: Bool, _ name: AccountName) -> [Effect] {
        guard case .loading = presence else { return [] }
        switch loaded {
        case .session(let held):
            presence = .held(held)
            let news: [Effect] = isAfterReload ? [.post(.signedIn, held.session)] : []
            return [.publish, .schedule] + news + [.wake, .post(.initialSession, held.session, problem)]
        case .absent(let absence): presence = .absent(absence)
        case .untouchable(let error): presence = .untouchable(error)
        case .failed(let error):
            presence = .loading(error)
            return [.retryLoading, .wake]
        }
        return [.wake, .post(.initialSession, nil, error(of: name))]
    }

    /// Applies what another host has stored. A session that is in memory only stays. A session that could not be written
    /// is in the vault's memory, and in the database if that came first.
    private mutating func applyRemoteChange(_ loaded: Loaded, _ name: AccountName) -> [Effect] {
        guard isLoaded, session?.isEphemeral != true else { return [] }
        let former = session
        switch loaded {
        case .session(let held):
            guard held.session != former else { return [] }
            let isSame = former?.signedInAt == held.session.signedInAt && former?.isSameUser(as: held.session) == true
            presence = .held((self.held ?? held).changed(to: held.session, isUnsaved: false, isUrgent: held.isUrgent))
            renewal.succeeded()
            problem = nil
            return [.publish, .schedule, .post(isSame ? .tokenRefreshed : .signedIn, held.session)]
        case .absent(let absence):
            guard presence != .absent(absence) else { return [] }
            presence = .absent(absence)
            guard let former else { return [] }
            problem = nil
            renewal.sessionEnded()
            return [.publish, .schedule, .post(.signedOut, former, self.absence(of: name))]
        case .untouchable, .failed: return []
        }
    }

    private mutating func open(
        _ held: HeldSession, _ kind: BrokerEvent.Kind, _ error: BrokerError?, _ name: AccountName
    ) -> [Effect] {
        guard obstacle == nil, isLoaded else { return [] }
        let former = session
        presence = .held(held)
        problem = error
        renewal.succeeded()
        return [
            .publish, .schedule,
            .record(.sessionOpened(name, subject: held.session.subject, replacing: former.map(\.subject))),
            .post(kind, held.session),
        ]
    }

    private mutating func hold(
        _ held: HeldSession, after outcome: Outcome, _ name: AccountName, _ now: BootInstant
    ) -> [Effect] {
        switch outcome {
        case .rotated(let session, let error):
            presence = .held(held.changed(to: session, isUnsaved: error != nil, isUrgent: held.isUrgent))
            problem = error ?? problem
            return [.publish, .schedule]
        case .renewed(let session, let error):
            presence = .held(held.changed(to: session, isUnsaved: error != nil, isUrgent: false))
            renewal.succeeded()
            problem = error
            return [.publish, .schedule, .record(.refreshSucceeded(name)), .post(.tokenRefreshed, session)]
        case .changed(let session, let kind, let error):
            // A session whose contents are the same was not written again.
            let isUnsaved = session == held.session ? held.isUnsaved : error != nil
            presence = .held(held.changed(to: session, isUnsaved: isUnsaved, isUrgent: held.isUrgent))
            // A success ends an earlier problem, unless the vault or a refresh is still being tried again.
            let isOver = !isUnsaved && renewal.backoff.error == nil
            problem = error ?? (isOver ? nil : problem)
            return [.publish, .schedule] + (kind.map { [.post($0, session)] } ?? [])
        case .failed(let error, let isOfRequest):
            guard !isOfRequest else { return [.record(.downscopingFailed(name, error))] }
            renewal.backoff.note(error, at: now)
            renewal.countRefusal(error)
            problem = error
            return [.schedule, .record(.refreshFailed(name, error)), .post(.refreshFailed, held.session, error)]
        case .dead(let code, let message, let unheard):
            let hasMoved = held.session.hasMoved
            presence = .absent(.ended(code: code, message: message, hasMoved: hasMoved))
            problem = nil
            renewal.sessionEnded()
            let error = BrokerError.sessionExpired(name, word: code, message: message, hasMoved: hasMoved)
            return [
                .publish, .schedule,
                .record(.sessionEnded(name, subject: held.session.subject, unheard: unheard, error: error)),
                .post(.refreshFailed, nil, error), .post(.signedOut, held.session, error),
            ]
        case .saved:
            presence = .held(held.changed(to: held.session, isUnsaved: false, isUrgent: held.isUrgent))
            switch problem {
            case .vaultFailed?, .vaultUnreachable?: problem = nil
            default: break
            }
            return [.schedule]
        case .becameUrgent:
            presence = .held(held.changed(to: held.session, isUnsaved: held.isUnsaved, isUrgent: true))
            return [.schedule]
        default: return [.schedule]
        }
    }

    private mutating func close(leaving rest: Session?, _ name: AccountName) -> [Effect] {
        guard let session else { return [] }
        renewal.sessionEnded()
        if let rest {
            presence = .held(HeldSession(rest))
            return [.publish, .schedule, .record(.sessionClosed(name, subject: nil))]
        }
        presence = .absent(.signedOut)
        return [
            .publish, .schedule, .record(.sessionClosed(name, subject: session.subject)), .post(.signedOut, session),
        ]
    }

    // MARK: Outcomes and effects

    enum Loaded: Sendable {
        case session(HeldSession)
        case absent(Absence)
        case untouchable(BrokerError)
        case failed(BrokerError)
    }

    enum Outcome: Sendable {
        /// `isAfterReload`: the account is back by a reload, so that listeners get a `signed_in` event.
        case loaded(Loaded, isAfterReload: Bool)
        case changedElsewhere(Loaded)
        /// The error is shown for the account, such as that the session could not be saved.
        case opened(HeldSession, BrokerEvent.Kind, BrokerError?)
        case signInBegan
        case refreshBegan(TokenKey, Promise<Result<Void, BrokerError>>)
        /// A new refresh token is held beside its predecessor; the rest of its response is not validated yet.
        /// The error is why it could not be saved, as in the next two.
        case rotated(Session, BrokerError?)
        case renewed(Session, BrokerError?)
        case changed(Session, BrokerEvent.Kind?, BrokerError?)
        /// `isOfRequest`: what failed was one request for a downscoped token, which says nothing about the session.
        case failed(BrokerError, isOfRequest: Bool)
        case refreshEnded(TokenKey, BrokerError?)
        case changing(Bool)
        case becameUrgent
        /// The provider has ended the session: its error response proves it. `unheard` may explain why.
        case dead(code: String?, message: String? = nil, unheard: EndProof.UnheardRequest? = nil)
        case saved
        case notSaved
        case signOutBegan
        /// The session was signed out. `leaving` is the session that the configuration makes, without tokens.
        case closed(leaving: Session?)
        case signOutEnded
        /// The daemon ends, and with it a session that is in memory only.
        case dropped
        /// The vault was locked. Everything is forgotten but the back-off.
        case locked
        /// The account was removed, or is bound to another provider or client now: this lane has ended.
        case replaced
        /// Something failed that no caller waits for; the error is shown.
        case noticed(BrokerError, BrokerEvent.Kind?)
        case networkReturned
        /// The configuration changed. That may have fixed what the provider refused.
        case configurationFixed
        /// The configuration was read again. That may have fixed a problem, where the account's settings have changed.
        case reloaded(isChanged: Bool)
        /// What a setting names can be used again, such as a file that was missing.
        case settingFixed(UnusableSetting)
    }

    enum Effect: Sendable {
        /// Readers see ``LaneState/visible`` from now on.
        case publish
        case schedule
        case retryLoading
        case wake
        case record(BrokerFact)
        case post(BrokerEvent.Kind, Session?, BrokerError? = nil)
    }
}

extension LaneState.Loaded {
    init(_ found: Result<VaultEntry?, VaultError>, of name: AccountName, by clock: BrokerClock) {
        switch found {
        case .success(let entry?): self.init(entry, of: name, by: clock)
        case .success(nil): self = .absent(.signedOut)
        // The vault has set the damaged record aside. It is known that there is no session.
        case .failure(.damaged(let reason)):
            self = .absent(.unreadable(BrokerError(VaultError.damaged(reason))))
        case .failure(.newer(let reason)): self = .untouchable(BrokerError(VaultError.newer(reason)))
        case .failure(let error): self = .failed(BrokerError(error))
        }
    }

    private init(_ entry: VaultEntry, of name: AccountName, by clock: BrokerClock) {
        do throws(SessionRecord.Failure) {
            let session = try SessionRecord.decode(entry.text, by: clock, shift: entry.shift)
            let hasExpired = session.tokens[.own]?.remaining(at: clock.bootInstant) == .zero
            self = .session(HeldSession(session, isUrgent: entry.isInterrupted || hasExpired))
        } catch {
            switch error {
            case .ended(let code, let message, let hasMoved):
                self = .absent(.ended(code: code, message: message, hasMoved: hasMoved))
            case .damaged:
                let text = "What the vault holds for \(name) cannot be read. Sign in again."
                self = .absent(.unreadable(.vaultFailed(.stated(text))))
            case .newer:
                let text = "The session of \(name) was sealed by a newer version of Ringback. It was not touched."
                self = .untouchable(.vaultFailed(.stated(text)))
            case .shared:
                let text =
                    "The session of \(name) is one that hosts share, and [vault] names no store any more. It was not "
                    + "touched."
                self = .untouchable(.vaultFailed(.stated(text)))
            }
        }
    }
}

/// The session of a lane, and what is known about it there. All of this ends with the session.
struct HeldSession: Sendable, Equatable {
    let session: Session
    /// The vault could not be written; tried again until it succeeds. False for a session that is never written.
    let isUnsaved: Bool
    /// It is refreshed at once: a refresh may have been interrupted, or the token expired meanwhile.
    let isUrgent: Bool
    /// The last refresh of the session's own token.
    private(set) var lastRefresh: LastRefresh?
    /// A refresh has been tried for ``Session/end``. If that did not move the end, it is not tried again.
    private(set) var hasTriedEnd = false

    struct LastRefresh: Sendable, Equatable {
        let endedAt: BootInstant
        /// Nil if it succeeded.
        let error: BrokerError?
    }

    init(_ session: Session, isUnsaved: Bool = false, isUrgent: Bool = false) {
        self.session = session
        self.isUnsaved = isUnsaved && !session.isEphemeral
        self.isUrgent = isUrgent
    }

    func changed(to session: Session, isUnsaved: Bool, isUrgent: Bool) -> HeldSession {
        var held = HeldSession(session, isUnsaved: isUnsaved, isUrgent: isUrgent)
        held.lastRefresh = lastRefresh
        held.hasTriedEnd = hasTriedEnd && session.end == self.session.end
        return held
    }

    /// The last refresh, if it ended so recently that its result is used for a new request.
    func recentRefresh(at now: BootInstant) -> LastRefresh? {
        lastRefresh.flatMap { now - $0.endedAt < .seconds(5) ? $0 : nil }
    }

    mutating func refreshBegan() { hasTriedEnd = session.end != nil }

    mutating func refreshEnded(_ error: BrokerError?, at now: BootInstant) {
        lastRefresh = LastRefresh(endedAt: now, error: error)
    }
}
