#if canImport(Glibc)
    internal import Glibc
#endif

/// Secret bytes, such as a token, a code verifier or a client secret.
///
/// A secret appears as `<secret>` when it is printed, reflected or interpolated. Secrets are compared in constant time.
/// The bytes are zeroed when the last copy is released. They can be read only through ``revealed()``,
/// ``revealedBytes()`` and ``withBytes(_:)``, so that a search for these names finds every place that uses them.
public struct Secret: Sendable {
    private let storage: Storage

    /// Copies the bytes. The caller has to erase the source.
    public init(bytes: some Collection<UInt8>) {
        storage = Storage(bytes)
    }

    /// Copies the text's UTF-8.
    public init(_ text: String) {
        storage = Storage(text.utf8)
    }

    /// The number of bytes.
    public var count: Int { storage.count }

    /// True if there are no bytes.
    public var isEmpty: Bool { storage.count == 0 }

    /// Calls `body` with the bytes, which are valid only during the call. Throws what `body` throws.
    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // This copies the pointer, not the bytes. With a span of the class's property itself, the optimizer of Swift
        // 6.3 crashes.
        let buffer = unsafe storage.buffer
        return try withExtendedLifetime(storage) { () throws(Failure) in try body(unsafe buffer.bytes) }
    }

    /// The secret as text, for the code that sends or stores it. Invalid UTF-8 is replaced by U+FFFD.
    public func revealed() -> String {
        unsafe String(decoding: storage.buffer, as: UTF8.self)
    }

    /// The secret as bytes, for the code that sends or stores it.
    public func revealedBytes() -> [UInt8] {
        unsafe [UInt8](storage.buffer)
    }

    /// Owns the bytes and zeroes them when it is destroyed. Immutable after creation, so sharing it between threads is
    /// safe.
    @safe private final class Storage: @unchecked Sendable {
        let buffer: UnsafeMutableRawBufferPointer
        var count: Int { unsafe buffer.count }

        init(_ bytes: some Collection<UInt8>) {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            unsafe buffer.copyBytes(from: bytes)
            unsafe self.buffer = buffer
        }

        deinit {
            guard let base = unsafe buffer.baseAddress else { return }
            unsafe explicit_bzero(base, buffer.count)
            unsafe buffer.deallocate()
        }
    }
}

extension Secret: Hashable {
    /// Compares in constant time for secrets of equal length. Only the length can be learned from the duration.
    public static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withBytes { mine in
            right.withBytes { theirs in
                var difference: UInt8 = 0
                for index in 0..<mine.byteCount {
                    let left = unsafe mine.unsafeLoad(fromByteOffset: index, as: UInt8.self)
                    let right = unsafe theirs.unsafeLoad(fromByteOffset: index, as: UInt8.self)
                    difference |= left ^ right
                }
                return difference == 0
            }
        }
    }

    public func hash(into hasher: inout Hasher) {
        unsafe hasher.combine(bytes: UnsafeRawBufferPointer(storage.buffer))
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "<secret>" }
    public var debugDescription: String { "<secret>" }
    /// Without this, reflection would print the private storage.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
