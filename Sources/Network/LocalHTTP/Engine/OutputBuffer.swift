internal import Glibc

/// Memory in which responses are assembled before they are sent. All connections of a loop share one buffer, which is
/// empty at the end of each connection's turn. Used bytes are zeroed, because responses contain tokens.
@safe struct OutputBuffer: ~Copyable {
    private static let usual = 16 * 1_024
    private var memory: UnsafeMutableRawPointer
    private var capacity = usual
    private(set) var count = 0

    init() {
        unsafe memory = .allocate(byteCount: OutputBuffer.usual, alignment: 16)
    }

    deinit {
        unsafe explicit_bzero(memory, count)
        unsafe memory.deallocate()
    }

    var isEmpty: Bool { count == 0 }

    mutating func append(fixed text: StaticString) {
        unsafe append(text.utf8Start, text.utf8CodeUnitCount)
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            if let start = bytes.baseAddress { unsafe append(start, bytes.count) }
        }
    }

    mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { unsafe append(start, bytes.count) }
        }
    }

    /// Appends a number that is not negative, in decimal digits.
    mutating func append(number: Int) {
        var divisor = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            var digit = UInt8(ascii: "0") + UInt8(number / divisor % 10)
            unsafe append(&digit, 1)
            divisor /= 10
        }
    }

    private mutating func append(_ source: UnsafeRawPointer, _ more: Int) {
        if capacity - count < more { resize(to: max(capacity * 2, count + more)) }
        unsafe memory.advanced(by: count).copyMemory(from: source, byteCount: more)
        count += more
    }

    private mutating func resize(to size: Int) {
        let other = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        unsafe other.copyMemory(from: memory, byteCount: min(count, size))
        unsafe explicit_bzero(memory, count)
        unsafe memory.deallocate()
        unsafe memory = other
        capacity = size
    }

    /// Calls a function with the bytes.
    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        unsafe body(UnsafeRawBufferPointer(start: memory, count: count))
    }

    /// The bytes from an offset on.
    func bytes(from offset: Int) -> [UInt8] {
        unsafe withBytes { bytes in unsafe Array(bytes[offset...]) }
    }

    mutating func clear() {
        unsafe explicit_bzero(memory, count)
        count = 0
        if capacity > OutputBuffer.usual { resize(to: OutputBuffer.usual) }
    }
}
