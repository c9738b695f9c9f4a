internal import Synchronization

/// Says of a request that failed that no byte of it was sent. Without the mark it may have been.
public final class UnsentMark: Sendable {
    private let mark = Atomic(false)

    public init() {}

    public var isNoted: Bool { mark.load(ordering: .acquiring) }

    /// For the client: the request has failed before it was sent.
    public func note() { mark.store(true, ordering: .releasing) }
}
