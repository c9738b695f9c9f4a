/// Bytes that wait for a reader who takes them in pieces. What has been taken does not stay in memory, also when the queue
/// is never empty.
public struct ByteQueue: Sendable {
    private var bytes: [UInt8] = []
    private var taken = 0

    /// Bytes of memory that an empty queue keeps.
    private static let kept = 512 << 10

    public init() {}

    public var count: Int { bytes.count - taken }
    public var isEmpty: Bool { count == 0 }
    /// Bytes in memory: those that wait, and some that have been taken.
    public var held: Int { bytes.count }
    /// The bytes that wait.
    public var waiting: ArraySlice<UInt8> { bytes[taken...] }

    public mutating func append(_ more: [UInt8]) {
        // At least as many bytes have been taken as are moved, so the moves take linear time in total.
        if taken > 65_536, taken >= count {
            bytes.removeFirst(taken)
            taken = 0
        }
        bytes += more
    }

    /// Takes the first of the bytes that wait, at most ``count``.
    public mutating func drop(_ count: Int) {
        taken += min(count, self.count)
        guard isEmpty else { return }
        bytes.removeAll(keepingCapacity: bytes.capacity <= ByteQueue.kept)
        taken = 0
    }
}
