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

/// Who may do what. Today: the user's own programs, and root, may do everything; the daemon lets nobody else connect.
/// The hook is here so that every request passes it once.
public final class Policy: Sendable {
    /// A decision, good until the policy changes.
    public struct Decision: Sendable {
        public let isAllowed: Bool
        /// True if it is the same for every account and operation, so that it may be kept for a connection.
        public let coversEverything: Bool
        public let generation: UInt64
    }

    /// As the configuration and `GET /v1/peer` name it.
    public let name = "same-uid"
    private let owner: UInt32
    private let current = Atomic<UInt64>(1)

    public init(owner: UInt32) {
        self.owner = owner
    }

    /// Grows when the policy changes: a decision of an older generation is made anew.
    public var generation: UInt64 { current.load(ordering: .acquiring) }

    /// Forgets what was decided.
    public func invalidate() { current.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// Decides once per connection; `operation`, `account` and `token` matter to rules that are yet to come.
    public func decide(
        _ peer: PolicyPeer, account: String?, operation: String, token: TokenKey? = nil
    ) -> Decision {
        Decision(isAllowed: peer.uid == owner || peer.uid == 0, coversEverything: true, generation: generation)
    }
}
