internal import Glibc

/// Memory into which a connection's bytes are received. Consumed bytes are zeroed, so that no request stays in the
/// memory of an open connection or in a buffer that is used again.
@safe struct ReceiveBuffer: ~Copyable {
    /// The capacity of a new buffer, in bytes.
    static let usual = 4_096

    private var memory: UnsafeMutableRawPointer
    private(set) var capacity = usual
    private var start = 0
    private var end = 0

    init() {
        unsafe memory = ReceiveBuffer.zeros(ReceiveBuffer.usual)
    }

    deinit {
        unsafe explicit_bzero(memory.advanced(by: start), end - start)
        unsafe memory.deallocate()
    }

    /// The number of bytes that were received but not consumed.
    var count: Int { end - start }

    /// Makes room if there is none, and calls a function that writes into it and returns how many bytes it wrote, or a
    /// negative number. Returns that number, and whether the room is full.
    mutating func receive(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> (count: Int, isFull: Bool) {
        if end == capacity { makeRoom() }
        let room = unsafe UnsafeMutableRawBufferPointer(start: memory.advanced(by: end), count: capacity - end)
        let written = unsafe body(room)
        end += min(max(written, 0), capacity - end)
        return (written, end == capacity)
    }

    /// Moves the bytes to the front. If they fill more than half of the memory, they are moved to memory of twice the
    /// size.
    private mutating func makeRoom() {
        let count = count
        if count <= capacity / 2 {
            unsafe memory.copyMemory(from: memory.advanced(by: start), byteCount: count)
            // Zero the bytes at their former place.
            let former = max(start, count)
            unsafe explicit_bzero(memory.advanced(by: former), end - former)
        } else {
            let larger = unsafe ReceiveBuffer.zeros(capacity * 2)
            unsafe larger.copyMemory(from: memory.advanced(by: start), byteCount: count)
            unsafe explicit_bzero(memory.advanced(by: start), count)
            unsafe memory.deallocate()
            unsafe memory = larger
            capacity *= 2
        }
        (start, end) = (0, count)
    }

    /// Calls a function with the bytes.
    func withBytes<Value>(_ body: (Span<UInt8>) -> Value) -> Value {
        let bytes = unsafe UnsafeRawBufferPointer(start: memory.advanced(by: start), count: count)
        return unsafe body(Span<UInt8>(_bytes: RawSpan(_unsafeBytes: bytes)))
    }

    /// Consumes and returns the next bytes, at most `most`.
    mutating func take(_ most: Int) -> [UInt8] {
        let count = min(most, count)
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: memory.advanced(by: start), count: count))
        consume(count)
        return bytes
    }

    mutating func consume(_ most: Int) {
        let count = min(most, count)
        unsafe explicit_bzero(memory.advanced(by: start), count)
        start += count
        if start == end { (start, end) = (0, 0) }
    }

    /// True if all of the memory is zero, except the bytes that are not consumed.
    var isErased: Bool {
        let whole = unsafe UnsafeRawBufferPointer(start: memory, count: capacity)
        return (0..<capacity).allSatisfy { index in unsafe (start..<end).contains(index) || whole[index] == 0 }
    }

    private static func zeros(_ count: Int) -> UnsafeMutableRawPointer {
        let memory = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: count)
        return unsafe memory
    }
}
