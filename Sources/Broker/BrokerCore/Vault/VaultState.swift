/// How many wrong passphrases a process may try, and in what time. The passphrase is protected by the cost of its key
/// derivation. This limit keeps a faulty program from using up the processor; other programs are not affected. Between
/// processes, ``UnlockAttempts`` decides who is next.
private let attemptLimit = 5
private let attemptWindow: Duration = .seconds(60)

/// Whether the vault is open, and if it is not, why, and who may try to open it.
struct VaultState: Sendable {
    private enum Access {
        /// No attempt to open it has ended yet.
        case unopened
        case open
        /// `isAsked`: a user locked it, so that only a user's request opens it.
        case locked(BrokerError, isAsked: Bool)
    }

    private var access = Access.unopened
    /// Failed attempts to open the vault, by process number.
    private var refusals: [Int32: [BootInstant]] = [:]

    var isOpen: Bool { if case .open = access { true } else { false } }

    /// Why no session can be read; nil while the vault is open, and before the first attempt to open it has ended.
    var lockError: BrokerError? { if case .locked(let error, _) = access { error } else { nil } }

    /// The same, if a user locked the vault.
    var userLock: BrokerError? { if case .locked(let error, isAsked: true) = access { error } else { nil } }

    /// How often the key source may have become available. An attempt that fails is repeated at once if this has risen
    /// since it began.
    private(set) var sourceChanges = 0

    /// The key source may be available now.
    ///
    /// - Returns: ``isToBeOpened``.
    mutating func sourceChanged() -> Bool {
        sourceChanges += 1
        return isToBeOpened
    }

    /// When to try again after an attempt that failed, and that began when ``sourceChanges`` was `changes`.
    func nextAttempt(after changes: Int, at now: BootInstant) -> BootInstant {
        changes == sourceChanges ? now + openRetryInterval : now
    }

    /// True if an attempt has failed, and the next one needs no user.
    var isToBeOpened: Bool { lockError != nil && userLock == nil }

    /// Why a process may not try to open the vault now; nil if it may.
    mutating func refusal(of pid: Int32, at now: BootInstant) -> BrokerError? {
        refusals = refusals.mapValues { $0.filter { $0 > now - attemptWindow } }.filter { !$0.value.isEmpty }
        guard let own = refusals[pid], own.count >= attemptLimit, let first = own.first else { return nil }
        return .tooManyAttempts(retryAfter: (first + attemptWindow - now).secondsRoundedUp)
    }

    mutating func opened() {
        access = .open
        refusals = [:]
    }

    /// An attempt has failed.
    ///
    /// - Parameter pid: of the process that asked for it; nil if none did.
    mutating func failed(_ error: BrokerError, by pid: Int32?, at now: BootInstant) {
        if let pid { refusals[pid, default: []].append(now) }
        // A wrong passphrase does not change why the vault is locked.
        if error == .wrongPassphrase, lockError != nil { return }
        access = .locked(error, isAsked: false)
    }

    /// A user locks the vault.
    mutating func lock() { access = .locked(.vaultLocked(.session(.vaultLocked)), isAsked: true) }
}
