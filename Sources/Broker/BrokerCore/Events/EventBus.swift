internal import Glibc
public import RingbackBase
public import SessionVault
internal import Synchronization

/// It carries no tokens and no links.
public struct BrokerEvent: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case initialSession = "initial_session"
        case signedIn = "signed_in"
        case tokenRefreshed = "token_refreshed"
        case userUpdated = "user_updated"
        case signedOut = "signed_out"
        case passwordRecovery = "password_recovery"
        case mfaChallengeVerified = "mfa_challenge_verified"
        case signInFailed = "sign_in_failed"
        /// A callback of a pending sign-in was refused. The sign-in keeps waiting.
        case callbackRefused = "callback_refused"
        case refreshFailed = "refresh_failed"
        case sessionEnding = "session_ending"
        /// A link came that completes no sign-in. The event contains only its scheme.
        case deepLink = "deep_link"
        case listenerReplaced = "listener_replaced"
        /// The database of a vault that hosts share went away: once for each outage.
        case databaseAway = "database_away"
        case databaseReturned = "database_returned"
        /// A program has used an account with `consent = "notify"` for the first time.
        case accountUsed = "account_used"
        /// Not told to the program that asked, nor to others in its control group or session.
        case consentRequested = "consent_requested"
        case consentDecided = "consent_decided"
    }

    public let kind: Kind
    public let account: AccountName?
    /// The account's state; nil for an event about a scheme, the database or consent.
    public let state: AccountState?
    public var scheme: String?
    public var database: DatabaseTurn?
    public var consent: ConsentNews?
    public var subject: String?
    public var user: JSONObject?
    public var expiresAt: WallInstant?
    public var error: BrokerError?
    /// When the session itself ends; only with `sessionEnding`.
    public var endsAt: WallInstant?
    public let at: WallInstant
}

extension BrokerEvent {
    public init(kind: Kind, scheme: String, at: WallInstant) {
        self.init(kind: kind, account: nil, state: nil, scheme: scheme, at: at)
    }

    public init(_ turn: DatabaseTurn, at: WallInstant) {
        let kind: Kind =
            switch turn {
            case .away: .databaseAway
            case .returned: .databaseReturned
            }
        self.init(kind: kind, account: nil, state: nil, database: turn, at: at)
    }
}

/// Sends events to all listeners, in order. An event is posted in the same turn as the change that it reports.
public final class EventBus: Sendable {
    private struct State {
        var nextID: UInt64
        var recent: [(id: UInt64, event: BrokerEvent)] = []
        var listeners: [ObjectIdentifier: EventSubscription] = [:]
    }
    private let state: Mutex<State>

    var listenerCount: Int { state.withLock { $0.listeners.count } }

    private static let memory = 256

    /// Identifiers start at the time in microseconds, or at `first` if that is known to be later than all earlier ones.
    public init(from first: UInt64? = nil) { state = Mutex(State(nextID: first ?? EventBus.now())) }

    /// The wall clock in microseconds.
    public static func now() -> UInt64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
    }

    public func post(_ event: BrokerEvent) {
        let listeners = state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            // `initialSession` describes an instant: only listeners that wait for it get it, and it is not replayed.
            if event.kind != .initialSession { state.recent.append((id, event)) }
            if state.recent.count > EventBus.memory { state.recent.removeFirst() }
            for listener in state.listeners.values { listener.append(id, event) }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.wake() }
    }

    /// Listens from now on. With `lastSeen`, the remembered events after that identifier come first.
    func subscribe(
        to account: AccountName?, after lastSeen: UInt64?, process: Int32? = nil, origin: ProgramOrigin? = nil
    ) -> EventSubscription {
        let subscription = EventSubscription(account: account, process: process, origin: origin)
        state.withLock { state in
            if let lastSeen {
                for (id, event) in state.recent where id > lastSeen { subscription.append(id, event) }
            }
            state.listeners[ObjectIdentifier(subscription)] = subscription
        }
        return subscription
    }

    func hasListener(amongProcesses processes: Set<Int32>) -> Bool {
        guard !processes.isEmpty else { return false }
        return state.withLock { $0.listeners.values.contains { $0.process.map(processes.contains) ?? false } }
    }

    func remove(_ subscription: EventSubscription) {
        state.withLock { _ = $0.listeners.removeValue(forKey: ObjectIdentifier(subscription)) }
    }
}

/// One listener's events. A listener that does not keep up is dropped rather than waited for.
public final class EventSubscription: Sendable {
    public enum Next: Sendable {
        case events([(id: UInt64, event: BrokerEvent)])
        /// Nothing happened in time.
        case quiet
        /// Too much happened while the listener did not read, and events were lost. Nothing follows.
        case overflowed
        case cancelled
    }

    private struct State {
        var queue: [(id: UInt64, event: BrokerEvent)] = []
        /// Accounts that are still loading. Their first event is the `initialSession` of when they are loaded.
        var awaited: Set<AccountName> = []
        var hasOverflowed = false
        var signal = Promise<Void>()
    }
    private let account: AccountName?
    let process: Int32?
    /// Nil for a listener in the daemon.
    private let origin: ProgramOrigin?
    private let state = Mutex(State())
    private static let capacity = 512

    init(account: AccountName?, process: Int32? = nil, origin: ProgramOrigin? = nil) {
        self.account = account
        self.process = process
        self.origin = origin
    }

    func append(_ id: UInt64, _ event: BrokerEvent) {
        guard account == nil || account == event.account else { return }
        if let origin, let asker = event.asker, origin.isShared(with: asker) { return }
        state.withLock { state in
            if let account = event.account {
                if event.kind == .initialSession {
                    guard state.awaited.remove(account) != nil else { return }
                } else if state.awaited.contains(account) {
                    return
                }
            }
            // After a lost event nothing more is queued: the listener could not see the gap.
            if state.queue.count < EventSubscription.capacity, !state.hasOverflowed {
                state.queue.append((id, event))
            } else {
                state.hasOverflowed = true
            }
        }
    }

    /// Holds the account's events back until it has been loaded and its `initialSession` is posted.
    func awaitInitial(_ account: AccountName) { state.withLock { _ = $0.awaited.insert(account) } }

    func stopAwaiting(_ account: AccountName) -> Bool { state.withLock { $0.awaited.remove(account) != nil } }

    func wake() {
        state.withLock { state in
            defer { state.signal = Promise() }
            return state.signal
        }.fulfil(())
    }

    public func next(within bound: Duration) async -> Next {
        let (ready, signal) = take()
        if let ready { return ready }
        _ = await signal.wait(atMost: bound)
        if Task.isCancelled { return .cancelled }
        return take().ready ?? .quiet
    }

    private func take() -> (ready: Next?, signal: Promise<Void>) {
        state.withLock { state in
            defer { state.queue = [] }
            if !state.queue.isEmpty { return (.events(state.queue), state.signal) }
            return (state.hasOverflowed ? .overflowed : nil, state.signal)
        }
    }
}
