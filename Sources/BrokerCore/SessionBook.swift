internal import HTTPMessages
internal import Secrets
internal import SessionVault

/// The sessions of every account, and the order in which they change.
///
/// Each account has one lane. Changes (opening, refreshing, closing) go through the lane one at a time, so a change may
/// suspend as often as it likes: nothing else touches its account meanwhile. Reads never queue: they take what is there,
/// or join the refresh in the lane. Vault first, memory second, event third.
actor SessionBook {
    /// What is known of one account.
    struct Lane {
        var account: Account
        var session: Session?
        /// Fulfilled once the vault has been asked; replaced when the binding changes.
        var load = Promise<Void>()
        /// Sign-outs that wait or work: readers see no session.
        var closings = 0
        var refreshes: [TokenKey: Promise<Result<Void, BrokerError>>] = [:]
        /// Of the session's own token.
        var lastRefresh: (endedAt: Int, result: Result<Void, BrokerError>)?
        var backoff = Backoff()
        /// The last failure; gone when the next sign-in, sign-out or refresh starts.
        var error: BrokerError?
        /// Tells a lane from the one that replaced it when the account's binding changed.
        let generation: UInt64
    }

    var lanes: [AccountName: Lane] = [:]
    /// The last change of each account: the next one waits for it, whatever becomes of the lane.
    private var tails: [AccountName: Promise<Void>] = [:]
    private var generation: UInt64 = 0
    /// What a start finds in the vault is no news; what a reload brings back is.
    private var hasStarted = false
    let vault: any Vault
    let bus: EventBus
    /// What readers who must not wait look at.
    nonisolated let board: SessionBoard
    let clock: BrokerClock
    private let work: Work
    private let http: any HTTPClient
    private let directory: ProviderDirectory

    /// Seconds of life that a caller gets without asking (CONTRACT section 4).
    static let defaultMinValid = 60

    init(
        vault: any Vault, http: any HTTPClient, directory: ProviderDirectory, bus: EventBus, work: Work,
        clock: BrokerClock
    ) {
        self.vault = vault
        self.http = http
        self.directory = directory
        self.bus = bus
        self.work = work
        self.clock = clock
        board = SessionBoard(clock: clock)
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
            if let known = lanes[account.name]?.account, known.binding != account.binding {
                changed.append(account.name)
                setAside(account.name)
            }
            if lanes[account.name] != nil {
                lanes[account.name]?.account = account
            } else {
                generation += 1
                lanes[account.name] = Lane(account: account, generation: generation)
                load(account.name, isNews: hasStarted)
            }
        }
        hasStarted = true
        return changed
    }

    /// Takes a session out of reach at once; the vault keeps it. A refresh that is under way saves what it gets in the
    /// old slot, and finds no lane to put it in.
    private func setAside(_ name: AccountName) {
        guard let lane = lanes.removeValue(forKey: name) else { return }
        board.publish(nil, for: name)
        if let session = lane.session { post(.signedOut, name, session: session, state: .unauthenticated) }
        lane.load.fulfil(())
    }

    private func load(_ name: AccountName, isNews: Bool) {
        guard let lane = lanes[name] else { return }
        enqueue(name) { book in
            defer { lane.load.fulfil(()) }
            let found: Result<Secret?, VaultError> = await book.read(lane.account.slot)
            guard book.lanes[name]?.generation == lane.generation else { return }
            switch found {
            case .failure(let error): book.lanes[name]?.error = BrokerError(error)
            case .success(nil): break
            case .success(let text?):
                guard let session = SessionRecord.decode(text) else {
                    book.lanes[name]?.error = .vaultFailed("What it holds for \(name) cannot be read. Sign in again.")
                    return
                }
                book.hold(session, name)
                if isNews { book.post(.signedIn, name, session: session) }
            }
        }
    }

    private func read(_ slot: VaultSlot) async -> Result<Secret?, VaultError> {
        do throws(VaultError) {
            return .success(try await vault.load(slot))
        } catch {
            return .failure(error)
        }
    }

    /// Waits until the vault has been asked for the account's session; false if the bound passed first.
    @discardableResult
    func loaded(_ name: AccountName, atMost bound: Duration = .seconds(90)) async -> Bool {
        guard let load = lanes[name]?.load else { return true }
        return await load.wait(atMost: bound) != nil
    }

    // MARK: Parts of a change

    func provider(_ account: Account) -> Provider {
        Provider(account: account, http: http, directory: directory, clock: clock)
    }

    /// Writes to the vault. A vault that cannot write loses nothing: memory holds the session and the next change
    /// writes again; the failure is shown.
    func save(_ session: Session, _ account: Account) async -> BrokerError? {
        do throws(VaultError) {
            try await vault.store(SessionRecord.encode(session), in: account.slot)
            return nil
        } catch {
            return BrokerError(error)
        }
    }

    func hold(_ session: Session, _ name: AccountName) {
        lanes[name]?.session = session
        publish(name)
    }

    func publish(_ name: AccountName) {
        guard let session = try? readable(name), let token = session.tokens[.own] else {
            return board.publish(nil, for: name)
        }
        board.publish(handOut(name, session, token), for: name)
    }

    func post(
        _ kind: BrokerEvent.Kind, _ name: AccountName, session: Session?, error: BrokerError? = nil,
        state: AccountState? = nil
    ) {
        bus.post(
            BrokerEvent(
                kind: kind, account: name, state: state ?? (session == nil ? .unauthenticated : .authenticated),
                subject: session?.subject, user: session?.user, expiresAt: session?.tokens[.own]?.expiresAt,
                error: error, at: clock.now()))
    }

    /// Puts a change at the end of the account's lane. The change reads the lane when its turn comes, not before.
    @discardableResult
    func enqueue<Value: Sendable>(
        _ name: AccountName, _ change: @escaping @Sendable (isolated SessionBook) async -> Value
    ) -> Promise<Value> {
        let previous = tails[name]
        let turn = Promise<Void>()
        tails[name] = turn
        return work.start {
            _ = await previous?.wait()
            let value = await change(self)
            turn.fulfil(())
            return value
        }
    }
}
