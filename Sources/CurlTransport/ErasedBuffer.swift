// Receives token responses. Every block of memory that they pass through here is zeroed.

internal import Glibc
internal import Secrets

/// A byte buffer that grows up to a limit and zeroes its memory.
@safe struct ErasedBuffer: ~Copyable {
    private var memory: UnsafeMutableRawBufferPointer
    private var count = 0
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
        unsafe memory = .allocate(byteCount: 0, alignment: 1)
    }

    deinit {
        unsafe ErasedBuffer.erase(memory)
    }

    var isEmpty: Bool { count == 0 }

    /// Appends the bytes. If they exceed the limit, it appends as many as fit and returns false.
    mutating func append(_ bytes: RawSpan) -> Bool {
        let fitting = min(bytes.byteCount, limit - count)
        let needed = count + fitting
        if unsafe needed > memory.count {
            let larger = unsafe UnsafeMutableRawBufferPointer.allocate(
                byteCount: max(needed, min(limit, max(4_096, memory.count * 2))), alignment: 1)
            unsafe larger.copyBytes(from: memory[..<count])
            unsafe ErasedBuffer.erase(memory)
            unsafe memory = larger
        }
        unsafe bytes.withUnsafeBytes { source in
            unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count..<needed]).copyBytes(
                from: UnsafeRawBufferPointer(rebasing: source[..<fitting]))
        }
        count = needed
        return fitting == bytes.byteCount
    }

    /// A copy of the bytes as a `Secret`.
    func secret() -> Secret {
        unsafe Secret(bytes: memory[..<count])
    }

    private static func erase(_ memory: UnsafeMutableRawBufferPointer) {
        if let base = memory.baseAddress { unsafe explicit_bzero(base, memory.count) }
        unsafe memory.deallocate()
    }
}
