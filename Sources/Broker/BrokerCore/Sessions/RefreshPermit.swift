internal import RingbackBase
internal import SessionVault
internal import Synchronization

/// The permission to present the refresh tokens of a session in one turn of its lane. ``RefreshTurn/announce`` alone
/// makes it for a stored session: once the vault has reserved room, and no other host is at the session.
struct RefreshPermit: Sendable {
    let others: RemoteTokens
    private let gate: RequestGate?

    init(_ vault: any Vault, _ slot: VaultSlot, under lease: RefreshLease, others: RemoteTokens) {
        self.others = others
        gate = RequestGate(vault: vault, slot: slot, lease: lease)
    }

    private init() {
        others = RemoteTokens()
        gate = nil
    }

    /// For a session that is in memory alone: no other host has it, and no room is needed.
    static let ofMemory = RefreshPermit()

    /// To be taken once for each token that is presented.
    func attempt() -> RefreshAttempt { RefreshAttempt(gate: gate) }
}

/// The vault's consent to each request. A type of its own: with a function that throws a typed error in its place, the
/// optimizer of Swift 6.3 makes code that crashes.
private struct RequestGate: Sendable {
    let vault: any Vault
    let slot: VaultSlot
    let lease: RefreshLease

    /// How long the request may take at most; nil for no bound. Throws if it must not be sent any more.
    func bound() async throws(BrokerError) -> Duration? {
        do throws(VaultError) {
            return try await vault.requestBound(slot, under: lease)
        } catch {
            throw BrokerError(error)
        }
    }
}

/// One presentation of one refresh token, with its requests: more than one if the secret is wanted in the form.
public struct RefreshAttempt: Sendable {
    private let gate: RequestGate?
    private let marks = Marks()

    fileprivate init(gate: RequestGate?) { self.gate = gate }

    /// For the revocation of a session that is no longer in its slot, where the server revokes by access token alone and
    /// the session's has expired. It asks for no lease: no host presents that session's tokens any more, the response is
    /// not kept, and a database that is away must not delay a sign-out.
    public static var ofRetiredSession: RefreshAttempt { RefreshAttempt(gate: nil) }

    func admit(_ request: inout HTTPRequest) async throws(BrokerError) {
        guard let gate else { return }
        if let bound = try await gate.bound() {
            request.limits.timeout = min(request.limits.timeout, bound)
            request.limits.sendsWithin = bound
        }
        request.unsentMark = marks.next()
    }

    var isUnsent: Bool { marks.areUnsent }

    private final class Marks: Sendable {
        private let marks = Mutex<[UnsentMark]>([])

        func next() -> UnsentMark {
            let mark = UnsentMark()
            marks.withLock { $0.append(mark) }
            return mark
        }

        var areUnsent: Bool { marks.withLock { !$0.isEmpty && $0.allSatisfy(\.isNoted) } }
    }
}
