internal import Synchronization

/// The local process that asks, by the kernel's word.
public struct PolicyPeer: Sendable, Hashable {
    public let uid: UInt32
    public let pid: Int32

    public init(uid: UInt32, pid: Int32) {
        self.uid = uid
        self.pid = pid
    }
}

/// What a program asks to do.
public enum PolicyOperation: Sendable, CaseIterable {
    case readState, token, idToken, providerToken, signIn, signOut, user, deliverCallback, deepLink, manage

    /// A restricted socket shows state and gives access tokens, and nothing else.
    var isServedByExposedSockets: Bool { self == .readState || self == .token }
}

/// Who may do what behind one socket. On the daemon's own, the user's programs and root may do everything, and nobody
/// else connects. On a restricted one, whoever may connect may see the accounts that it shows and take tokens of them
/// within its ceiling, and nothing else. Every request passes here once.
public final class Policy: Sendable {
    /// A decision, good until the policy changes.
    public struct Decision: Sendable {
        public let isAllowed: Bool
        /// True if it is the same for every account and operation, so that it may be kept for a connection.
        public let coversEverything: Bool
        public let generation: UInt64
    }

    /// As the configuration and `GET /v1/peer` name it.
    public var name: String { exposedSocket == nil ? "same-uid" : "restricted" }
    /// What a restricted socket shows; nil on the daemon's own.
    public let exposedSocket: ExposedSocket?
    private let owner: UInt32
    private let current = Atomic<UInt64>(1)

    public init(owner: UInt32, showing exposedSocket: ExposedSocket? = nil) {
        self.owner = owner
        self.exposedSocket = exposedSocket
    }

    /// Grows when the policy changes: a decision of an older generation is made anew.
    public var generation: UInt64 { current.load(ordering: .acquiring) }

    /// Forgets what was decided.
    public func invalidate() { current.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// True if this user may connect at all.
    public func admits(uid: UInt32) -> Bool {
        uid == owner || uid == 0 || exposedSocket?.order.allowedUIDs.contains(uid) == true
    }

    /// Decides. `account` is the one that is asked about, `token` which of its tokens.
    public func decide(
        _ peer: PolicyPeer, account: String?, operation: PolicyOperation, token: TokenKey? = nil
    ) -> Decision {
        guard let exposedSocket else {
            return Decision(isAllowed: admits(uid: peer.uid), coversEverything: true, generation: generation)
        }
        let isAllowed =
            admits(uid: peer.uid) && operation.isServedByExposedSockets
            && account.map(exposedSocket.shows) ?? true && token.map(exposedSocket.covers) ?? true
        return Decision(isAllowed: isAllowed, coversEverything: false, generation: generation)
    }
}
