internal import HTTPMessages
internal import Secrets
internal import SessionVault

/// The sessions of every account, and the order in which they change.
///
/// Each account has one lane. Changes (opening, refreshing, closing) go through the lane one at a time, so a change may
/// suspend as often as it likes: nothing else touches its account meanwhile. Reads never queue: they take what is there,
/// or join the refresh in the lane. Vault first, memory second, event third.
actor SessionManager {
    /// What is known of one account.
    struct Lane {
        var account: Account
        var session: Session?
        /// Fulfilled once the vault has told what it holds; replaced when it is locked.
        var load = Promise<Void>()
        var isLoaded = false
        /// Why the vault's word could not be had; asked again until it is.
        var loadFailure: BrokerError?
        /// Why nothing may be written over what the vault holds, if so: it is of a newer version.
        var untouchable: BrokerError?
        /// Memory holds more than the vault could be made to take.
        var isUnsaved = false
        /// To be refreshed at once: a refresh was under way when an earlier daemon ended, or the token expired meanwhile.
        var isOverdue = false
        /// The session's own end that a refresh has been tried for: one that does not move it is not tried again.
        var triedEnd: Deadline?
        /// Something else than a refresh has its turn: what it leaves is looked at when it is done.
        var isChanging = false
        /// Sign-outs that wait or work: readers see no session.
        var closings = 0
        var refreshes: [TokenKey: Promise<Result<Void, BrokerError>>] = [:]
        /// Of the session's own token.
        var lastRefresh: (endedAt: BootInstant, result: Result<Void, BrokerError>)?
        var backoff = Backoff()
        /// The last failure; gone when the next sign-in, sign-out or refresh starts.
        var error: BrokerError?
        /// Tells a lane from the one that replaced it when the account's binding changed.
        let generation: UInt64
    }

    /// What stands in the way of every session.
    enum VaultState {
        /// Nobody has tried to open it yet.
        case unopened
        case open
        /// `isAsked`: a person locked it, so that nothing but a person opens it.
        case locked(BrokerError, isAsked: Bool)
    }

    var lanes: [AccountName: Lane] = [:]
    /// The last change of each account: the next one waits for it, whatever becomes of the lane.
    var tails: [AccountName: Promise<Void>] = [:]
    private var generation: UInt64 = 0
    /// What a start finds in the vault is no news; what a reload brings back is.
    private var hasStarted = false
    var vaultState = VaultState.unopened
    /// Fulfilled when the first attempt to open the vault has ended.
    let firstOpening = Promise<Void>()
    /// What the vault would not take of accounts that are locked, removed or bound otherwise now: written again until
    /// it is kept, and taken up when the account is back. Served to nobody meanwhile.
    var unwritten: [VaultSlot: Session] = [:]
    /// Sessions of accounts that are removed or bound otherwise now, and that no file is to have: taken up when the
    /// account is back, ended with the daemon or by a lock.
    var shelved: [VaultSlot: Closed] = [:]
    /// What apps know about their people, where they were asked.
    var profiles: [AccountName: SupabaseProfile] = [:]
    /// The rows that are on their way.
    var profileLooks: [AccountName: Promise<Result<SupabaseProfile, BrokerError>>] = [:]
    /// Sessions that were to leave nothing behind, and that a lock took: their servers are to hear of it.
    var orphans: [Closed] = []
    /// Opening, closing and rekeying take turns.
    var vaultTurn: Promise<Void>?
    /// Failed attempts to open the vault.
    var refusedOpenings: [BootInstant] = []
    /// What is to be done without being asked, and when.
    var scheduler = Scheduler<ScheduledTask>()
    /// Refreshes that the agenda started and that run still, by provider.
    var tasksRunning: [String: Int] = [:]
    /// Those that are due while enough of them run.
    var tasksWaiting: [String: Set<AccountName>] = [:]
    /// Rung when the agenda got something that comes before what was awaited.
    var signal = Promise<Void>()
    let vault: any Vault
    let bus: EventBus
    /// What readers who must not wait look at.
    nonisolated let snapshot: SessionSnapshot
    let clock: BrokerClock
    let work: Work
    let record: @Sendable (BrokerFact) -> Void
    private let http: any HTTPClient
    private let directory: ProviderDirectory

    /// Seconds of life that a caller gets without asking.
    static let defaultMinValid = 60

    init(
        vault: any Vault, http: any HTTPClient, directory: ProviderDirectory, bus: EventBus, work: Work,
        clock: BrokerClock, record: @escaping @Sendable (BrokerFact) -> Void
    ) {
        self.vault = vault
        self.http = http
        self.directory = directory
        self.bus = bus
        self.work = work
        self.clock = clock
        self.record = record
        snapshot = SessionSnapshot(clock: clock)
    }

    // MARK: Accounts

    /// Takes over the configuration's accounts. A session whose binding is no longer the account's is set aside in the
    /// vault, as is a removed account's; both are there again when the configuration is. Returns the accounts whose
    /// pending flows no longer hold.
    func configure(_ accounts: [Account]) -> [AccountName] {
        var changed: [AccountName] = []
        let names = Set(accounts.map(\.name))
        for name in lanes.keys where !names.contains(name) {
            changed.append(name)
            setAside(name)
        }
        for account in accounts {
            if let known = lanes[account.name]?.account, known.bindingID != account.bindingID {
                changed.append(account.name)
                setAside(account.name)
            }
            if let known = lanes[account.name]?.account {
                for seconds in known.sessionWarnings where !account.sessionWarnings.contains(seconds) {
                    scheduler.remove(.warn(account.name, seconds: seconds))
                }
                // Somebody may have mended what a service was refused for.
                if let lane = lanes[account.name], awaitsMending(lane) { lanes[account.name]?.backoff = Backoff() }
                lanes[account.name]?.account = account
                schedule(account.name)
            } else {
                generation += 1
                lanes[account.name] = Lane(account: account, generation: generation)
                if case .open = vaultState { load(account.name, isNews: hasStarted) }
            }
        }
        if !hasStarted {
            // Readiness waits neither for a key source nor for the disk; the first session answer does.
            work.start { _ = await self.openVault(passphrase: nil, isAsked: false) }
        }
        hasStarted = true
        return changed
    }

    /// Takes a session out of reach at once; the vault keeps it. A refresh that is under way saves what it gets in the
    /// old slot, and finds no lane to put it in.
    private func setAside(_ name: AccountName) {
        guard let lane = lanes.removeValue(forKey: name) else { return }
        snapshot.publish(nil, for: name)
        for seconds in lane.account.sessionWarnings { scheduler.remove(.warn(name, seconds: seconds)) }
        scheduler.remove(.load(name))
        // What the vault does not have, or is not to have, is remembered here until the account is back.
        if let session = lane.session, !session.isOfService {
            if session.isEphemeral {
                shelved[lane.account.slot] = Closed(account: lane.account, session: session, retirement: nil)
            } else if lane.isUnsaved {
                unwritten[lane.account.slot] = session
            }
        }
        unschedule(name)
        if let session = lane.session { post(.signedOut, name, session: session, state: .unauthenticated) }
        lane.load.fulfil(())
    }

    // MARK: Parts of a change

    func provider(_ account: Account) -> Provider {
        Provider(account: account, http: http, directory: directory, clock: clock)
    }

    /// Writes to the vault. A vault that cannot write loses nothing: memory holds the session, it is written again and
    /// again until it is kept, and the failure is shown.
    func save(_ session: Session, _ account: Account) async -> BrokerError? {
        let error = await write(session, in: account.slot)
        // Another turn of its lane has set it aside meanwhile.
        if session.isEphemeral, shelved[account.slot] != nil {
            shelved[account.slot] = Closed(account: account, session: session, retirement: nil)
        }
        if error != nil, lanes[account.name]?.account.slot != account.slot {
            // No lane remembers it any more.
            unwritten[account.slot] = session
            note(.save(account.name), at: clock.bootInstant + SessionManager.saveRetryInterval)
        }
        return error
    }

    func write(_ session: Session, in slot: VaultSlot) async -> BrokerError? {
        guard !session.isEphemeral else { return nil }
        do throws(VaultError) {
            try await vault.store(SessionRecord.encode(session, bootID: clock.bootID), in: slot)
            unwritten[slot] = nil
            return nil
        } catch {
            guard case .refused = error, session.tokens.count > 1 else { return BrokerError(error) }
            // Too large for it: narrowed tokens can be had again, the lineage cannot.
            var bare = session
            bare.tokens = session.tokens.filter { $0.key == .own }
            return await write(bare, in: slot)
        }
    }

    func hold(_ session: Session, _ name: AccountName) {
        lanes[name]?.session = session
        publish(name)
        schedule(name)
    }

    func publish(_ name: AccountName) {
        guard lockError == nil, let session = try? readable(name), let token = session.tokens[.own] else {
            return snapshot.publish(nil, for: name)
        }
        snapshot.publish(issuedToken(name, session, token), for: name)
    }

    func post(
        _ kind: BrokerEvent.Kind, _ name: AccountName, session: Session?, error: BrokerError? = nil,
        state: AccountState? = nil, endsAt: Int? = nil
    ) {
        switch kind {
        case .signedIn, .signedOut, .userUpdated, .passwordRecovery: renewProfile(name)
        default: break
        }
        bus.post(
            BrokerEvent(
                kind: kind, account: name, state: state ?? (session == nil ? .unauthenticated : .authenticated),
                subject: session?.subject, user: session?.user,
                expiresAt: session?.tokens[.own]?.expiry?.wall(by: clock).seconds,
                error: error, endsAt: endsAt, at: clock.now()))
    }

    /// Puts a change at the end of the account's lane. The change reads the lane when its turn comes, not before.
    @discardableResult
    func enqueue<Value: Sendable>(
        _ name: AccountName, _ change: @escaping @Sendable (isolated SessionManager) async -> Value
    ) -> Promise<Value> {
        let previous = tails[name]
        let turn = Promise<Void>()
        tails[name] = turn
        return work.start {
            // A change that shutdown cancels keeps its turn: two at once would present the same refresh token.
            await previous?.settle()
            let value = await change(self)
            turn.fulfil(())
            return value
        }
    }
}
