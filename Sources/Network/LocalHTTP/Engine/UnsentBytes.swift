/// The bytes of responses that the kernel has not accepted yet.
struct UnsentBytes {
    private var bytes: [UInt8] = []
    private var offset = 0

    init() {}

    init(_ bytes: [UInt8], from offset: Int) {
        self.bytes = bytes
        self.offset = offset
    }

    var isEmpty: Bool { offset == bytes.count }

    mutating func append(_ more: [UInt8]) {
        bytes.append(contentsOf: more)
    }

    mutating func consume(_ count: Int) {
        offset += count
        if isEmpty { self = UnsentBytes() }
    }

    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        unsafe bytes.withUnsafeBytes { bytes in unsafe body(UnsafeRawBufferPointer(rebasing: bytes[offset...])) }
    }
}
