public import RingbackBase
internal import Synchronization

/// The local process that connected, as the kernel reports it.
public struct PolicyPeer: Sendable, Hashable {
    public let uid: UInt32
    public let pid: Int32

    public init(uid: UInt32, pid: Int32) {
        self.uid = uid
        self.pid = pid
    }
}

extension ExposedSocket {
    /// State and access tokens, and proofs if the socket was made for them. Nothing else.
    public func serves(_ operation: PolicyOperation) -> Bool {
        operation == .readState || operation == .token || operation == .proof && order.givesProofs
    }
}

/// The permissions of the programs at one socket. At the daemon's own socket, programs of the user and of root may do
/// everything, and no others may connect. At an exposed socket, a program that may connect may read the accounts that
/// the socket exposes and request tokens of them within its scope, and nothing else. Every request is checked here
/// once.
public final class Policy: Sendable {
    /// A decision. It is valid until the policy changes.
    public struct Decision: Sendable {
        public let isAllowed: Bool
        /// True if it is the same for every account and operation, so that a connection may cache it.
        public let coversEverything: Bool
        public let generation: UInt64
    }

    /// As the configuration and `GET /v1/peer` name it.
    public var name: String { exposedSocket == nil ? "same-uid" : "restricted" }
    /// The exposed socket; nil for the daemon's own socket.
    public let exposedSocket: ExposedSocket?
    private let owner: UInt32
    private let current = Atomic<UInt64>(1)

    public init(owner: UInt32, showing exposedSocket: ExposedSocket? = nil) {
        self.owner = owner
        self.exposedSocket = exposedSocket
    }

    /// Increases when the policy changes. A decision of an older generation is not valid any more.
    public var generation: UInt64 { current.load(ordering: .acquiring) }

    public func invalidate() { current.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    public func admits(uid: UInt32) -> Bool {
        uid == owner || uid == 0 || exposedSocket?.order.allowedUIDs.contains(uid) == true
    }

    /// Decides. `account` is the account of the request, `token` which of its tokens.
    public func decide(
        _ peer: PolicyPeer, account: String?, operation: PolicyOperation, token: TokenKey? = nil
    ) -> Decision {
        // Read first: if the policy changes meanwhile, the decision belongs to the former generation.
        let generation = generation
        guard let exposedSocket else {
            return Decision(isAllowed: admits(uid: peer.uid), coversEverything: true, generation: generation)
        }
        let isAllowed =
            admits(uid: peer.uid) && exposedSocket.serves(operation)
            && account.map(exposedSocket.shows) ?? true && token.map(exposedSocket.covers) ?? true
        return Decision(isAllowed: isAllowed, coversEverything: false, generation: generation)
    }
}
