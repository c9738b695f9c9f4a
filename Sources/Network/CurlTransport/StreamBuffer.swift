/// Bytes on their way through a transfer, which are taken in pieces from the front. What has been taken is removed when it
/// is as much as what is left, so that no byte is moved often.
struct StreamBuffer {
    private var bytes: [UInt8] = []
    private var taken = 0

    /// Bytes of memory that an empty buffer keeps.
    private static let kept = 512 << 10

    var count: Int { bytes.count - taken }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ more: UnsafeRawBufferPointer) {
        makeRoom()
        unsafe bytes.append(contentsOf: more)
    }

    mutating func append(_ more: [UInt8]) {
        makeRoom()
        bytes += more
    }

    /// Lends the first bytes, at most so many.
    func withFirst<Result>(_ limit: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        unsafe bytes[taken..<(taken + min(limit, count))].withUnsafeBytes { unsafe body($0) }
    }

    /// The first bytes, at most so many.
    mutating func take(atMost limit: Int) -> [UInt8] {
        let first = Array(bytes[taken..<(taken + min(limit, count))])
        drop(first.count)
        return first
    }

    /// Copies the first bytes, as many as there is room for. How many those are.
    mutating func take(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, count)
        unsafe room.copyBytes(from: bytes[taken..<(taken + count)])
        drop(count)
        return count
    }

    /// Removes the first bytes, of which there are at least so many.
    mutating func drop(_ count: Int) {
        taken += count
        guard isEmpty else { return }
        bytes.removeAll(keepingCapacity: bytes.capacity <= StreamBuffer.kept)
        taken = 0
    }

    private mutating func makeRoom() {
        guard taken > 65_536, taken >= count else { return }
        bytes.removeFirst(taken)
        taken = 0
    }
}
